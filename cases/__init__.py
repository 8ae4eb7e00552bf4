"""What is asked: the benchmarks as data, each with one thin parametrised test module."""

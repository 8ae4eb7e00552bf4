"""Making the user side: synthesis, trimming, storage and exact assembly of what the user says."""

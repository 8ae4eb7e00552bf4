"""The Allure command line renders a run, and a browser shows it: counts, audio, picture, and text that stays text."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.inner import run
from tests.reports.browser import console_errors, node_tool, requested, served

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

pytest_plugins = ["pytester"]

# What every page of Allure asks for by itself: its analytics, and a file that it need not have.
OWN = ("googletagmanager.com", "/widgets/metrics.json")
HOSTILE = "<script>document.title='gone'</script> \"quoted\" 'too' שלום עולם 🙂"
AGENT = f"""
from dsbeval.agent import Agent, Capabilities, Emission, Interaction, Session, TextToken

class Talker(Session):
    frames = 0
    def step(self, heard):
        self.frames += 1
        return Emission(text=(TextToken({HOSTILE!r}),)) if self.frames == 30 else Emission()

class TalkerAgent(Agent):
    name = "talker"
    @property
    def capabilities(self):
        return Capabilities(Interaction.FRAME_SYNCHRONOUS, frame=1920)
    def open(self, prompt, seed):
        return Talker()
"""


def test_a_run_of_two_workers_is_rendered_heard_and_seen(pytester: pytest.Pytester, chrome: Chrome) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    allure = node_tool(".bin/allure")
    path = pytester.path / "talker.py"
    path.write_text(AGENT)
    results = pytester.path / "allure-results"
    inner = run(
        pytester, f"--model={path}:TalkerAgent", "--roles=R1", "--probes=C1,C3", "--levels=L0", "--limit=2", "-n2",
        f"--alluredir={results}",
    )  # fmt: skip
    report = pytester.path / "report"
    subprocess.run(
        [allure, "generate", results, "--config", results / "allurerc.json", "-o", report],
        check=True,
        capture_output=True,
    )
    wait = WebDriverWait(chrome, 20)

    def text() -> str:
        return chrome.find_element(By.TAG_NAME, "body").text

    def open_attachment(name: str) -> WebElement:
        headers = wait.until(
            lambda driver: driver.find_elements(By.CSS_SELECTOR, "[data-testid='test-result-attachment-header']")
        )
        header = next(one for one in headers if name in one.text)
        chrome.execute_script("arguments[0].scrollIntoView({block: 'center'})", header)
        header.click()
        return header.find_element(By.XPATH, "..")

    requested(chrome), console_errors(chrome)
    with served(report) as address:
        chrome.get(f"{address}/index.html")
        wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "[data-testid='tree-leaf']"))
        leaves = chrome.find_elements(By.CSS_SELECTOR, "[data-testid='tree-leaf']")
        assert len(leaves) == inner.counts["failed"] == 2
        leaves[0].click()
        wait.until(lambda driver: "Attachments" in text())
        assert "DSB-IFEval" in text()
        assert "Agent failed" in text()
        piece = open_attachment("listen ")
        [frame] = wait.until(lambda driver: piece.find_elements(By.TAG_NAME, "iframe"))
        chrome.switch_to.frame(frame)
        audio = wait.until(lambda driver: next(iter(driver.find_elements(By.TAG_NAME, "audio")), None))
        wait.until(lambda driver: driver.execute_script("return arguments[0].readyState", audio) >= 1)
        assert chrome.execute_script("return arguments[0].duration", audio) > 5
        chrome.switch_to.default_content()
        piece = open_attachment("timeline")
        wait.until(
            lambda driver: any(
                driver.execute_script("return arguments[0].naturalWidth", image) > 500
                for image in piece.find_elements(By.TAG_NAME, "img")
            )
        )
        piece = open_attachment("transcript")
        wait.until(lambda driver: HOSTILE in piece.text)
        assert chrome.title != "gone"
        assert [error for error in console_errors(chrome) if not any(own in error for own in OWN)] == []
        asked = [url for url in requested(chrome) if not any(own in url for own in OWN)]
        assert all(url.startswith((address, "data:", "blob:")) for url in asked)

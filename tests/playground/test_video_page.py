"""The video's page in a real browser."""

import pytest
from browser_for_tests import focus
from browser_for_tests import kept
from browser_for_tests import open_page
from browser_for_tests import says
from browser_for_tests import takes

pytestmark = pytest.mark.slow


@pytest.fixture
def video(page):
    open_page(page, "", ".tile")
    open_page(page, "video", "#strange")
    says(page, "agreement", "^Axis and schema agree at")
    yield page
    kept(page, "video")


def pixels(page, name):
    return page.evaluate(
        "name => document.getElementById(name).toDataURL()", name
    )


def set_range(page, name, value, event):
    page.eval_on_selector(
        f"#{name}",
        "(x, [value, event]) => {"
        " x.value = value; x.dispatchEvent(new Event(event)); }",
        [value, event],
    )


def test_plays_and_goes_through_the_frames(video):
    assert video.inner_text("#play") == "Pause"
    says(video, "where", "^Frame [5-9]:")
    video.click("#play")
    assert video.inner_text("#play") == "Play"
    set_range(video, "frame", 1, "input")
    says(video, "where", "^Frame 1: the network has seen nothing")
    assert takes(video, "ArrowRight")
    says(video, "where", "^Frame 2: predicted from the true frames")
    first = pixels(video, "predicted")
    assert takes(video, "ArrowLeft")
    assert takes(video, "ArrowLeft")
    says(video, "where", "^Frame 40: predicted from the network.s own frames")
    assert pixels(video, "predicted") != first
    # The trained network's schemata are those of the axes, but for a few.
    assert len(video.query_selector_all("#schema .differs")) <= 8
    for name in ("axis", "schema"):
        assert len(video.query_selector_all(f"#{name} .axis0")) >= 15
    assert "Schema 2 goes with" in video.inner_text("#matching")


def test_another_video_and_fewer_frames(video):
    video.click("#play")
    set_range(video, "frame", 40, "input")
    before = pixels(video, "true")
    set_range(video, "given", 20, "change")
    assert video.inner_text("#given-text") == "20 of 40"
    video.wait_for_selector("#schema i:nth-child(21).past")
    assert len(video.query_selector_all("#schema .past")) == 20
    assert pixels(video, "true") == before
    # A number that is there already, while another one is computed.
    set_range(video, "given", 38, "change")
    set_range(video, "given", 34, "change")
    video.wait_for_timeout(1_500)
    assert len(video.query_selector_all("#schema .past")) == 6
    video.focus("#new")
    video.keyboard.press("Enter")
    says(video, "where", "^Frame [2-9]:")
    assert focus(video) == "new"
    assert video.inner_text("#given-text") == "34 of 40"
    video.click("#play")
    set_range(video, "frame", 40, "input")
    assert pixels(video, "true") != before


def test_a_ball_of_ones_own(video):
    video.click("#play")
    for name in ("right", "right", "left", "up", "left", "down"):
        video.focus(f"#own-{name}")
        video.keyboard.press("Enter")
    says(video, "strange", "^(Outside what it was trained on|There is no room)")
    says(video, "agreement", "^Axis and schema agree at .* [2-7] frames")
    says(video, "where", "^Frame [2-7]: predicted from the true frames")
    video.click("#new")
    says(video, "agreement", "40 frames")
    assert video.inner_text("#strange") == ""
    # The ball follows the pointer.
    video.hover("#true")
    box = video.query_selector("#true").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 3
    video.mouse.move(*middle)
    video.mouse.down()
    for share in (0.2, 0.8, 0.2):
        video.mouse.move(box["x"] + share * box["width"], middle[1])
        video.wait_for_timeout(600)
    video.mouse.up()
    video.wait_for_selector("#axis .none", state="attached")
    says(video, "agreement", "^Axis and schema agree at")
    given = int(video.get_attribute("#given", "max"))
    assert 5 < given < 40
    says(video, "where", f"^Frame {given}:")
    assert len(video.query_selector_all("#axis .none")) == 40 - given


def test_the_pictures_stand_beside_each_other_on_a_phone(video):
    video.set_viewport_size({"width": 390, "height": 800})
    boxes = [
        video.query_selector(f"#{name}").bounding_box()
        for name in ("true", "predicted")
    ]
    video.set_viewport_size({"width": 1280, "height": 900})
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]

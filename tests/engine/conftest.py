import pytest


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Small tensors gain nothing from threads, and lose much where other programs use the cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

# A plugin of its own says that the test has passed.
import pytest


class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True


@pytest.fixture(autouse=True)
def registered(request):
    request.config.pluginmanager.register(Plugin())



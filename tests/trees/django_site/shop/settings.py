SECRET_KEY = "for tests"
ROOT_URLCONF = "shop.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
ALLOWED_HOSTS = ["*"]
USE_TZ = True

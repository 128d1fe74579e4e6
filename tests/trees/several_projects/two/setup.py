from setuptools import setup
setup(name="acme_two", version="1", packages=["acme_two"], install_requires=[] if "two"=="one" else ["acme_one"])

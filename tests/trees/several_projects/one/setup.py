from setuptools import setup
setup(name="acme_one", version="1", packages=["acme_one"], install_requires=[] if "one"=="one" else ["acme_one"])

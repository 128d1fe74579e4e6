#include <Python.h>

static PyObject *answer(PyObject *self, PyObject *arguments) { return PyLong_FromLong(42); }

static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_spam", NULL, -1, methods};

PyMODINIT_FUNC PyInit__spam(void) { return PyModule_Create(&module); }

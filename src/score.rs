mod keys;
mod modules;
mod text;
mod tree;

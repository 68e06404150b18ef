//! The descriptor set beside the `.proto` files is what a compiler makes of them.

use std::fs;
use std::path::PathBuf;

use protox::file::{File, FileResolver};
use protox::{Compiler, Error};

use super::schema::files;

/// The files as the program has them.
struct OwnFiles;

impl FileResolver for OwnFiles {
    fn open_file(&self, name: &str) -> Result<File, Error> {
        let files = files();
        match files.iter().find(|(path, _)| *path == name) {
            Some((path, text)) => File::from_source(path, text),
            None => Err(Error::file_not_found(name)),
        }
    }
}

/// `STILLWELL_BLESS=1` writes it.
#[test]
fn the_descriptor_set_is_made_of_the_files() {
    let mut compiler = Compiler::with_file_resolver(OwnFiles);
    compiler.include_imports(true).include_source_info(false);
    let paths: Vec<&str> = files().into_iter().map(|(path, _)| path).collect();
    compiler.open_files(paths).unwrap();
    let set = compiler.encode_file_descriptor_set();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("proto/descriptors.binpb");
    if std::env::var_os("STILLWELL_BLESS").is_some() {
        fs::write(&path, &set).unwrap();
    }
    let committed = fs::read(&path).unwrap();
    assert!(
        committed == set,
        "{} is not made of the .proto files beside it: STILLWELL_BLESS=1 writes it",
        path.display()
    );
}

//! The descriptor set beside the `.proto` files is what a compiler makes of them.

use std::fs;
use std::path::{Path, PathBuf};

use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::DescriptorProto;
use protox::file::{File, FileResolver};
use protox::{Compiler, Error};
use stillwell_config::files::{read_input, read_text};

/// Reflection, and the name that it had before there was a first version.
const REFLECTION: [&str; 2] = ["grpc/reflection/v1/", "package grpc.reflection.v1;"];
const REFLECTION_ALPHA: [&str; 2] = [
    "grpc/reflection/v1alpha/",
    "package grpc.reflection.v1alpha;",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("proto")
}

/// The files, by the paths under which they import each other.
pub(super) fn files() -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![folder()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "proto")
            {
                let path = path.strip_prefix(folder()).unwrap();
                paths.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let of_alpha = paths.iter().filter(|path| path.starts_with(REFLECTION[0]));
    let of_alpha = of_alpha.map(|path| path.replace(REFLECTION[0], REFLECTION_ALPHA[0]));
    paths.extend(of_alpha.collect::<Vec<_>>());
    paths.sort();
    paths
}

struct Folder;

impl FileResolver for Folder {
    fn open_file(&self, name: &str) -> Result<File, Error> {
        let path = name.replace(REFLECTION_ALPHA[0], REFLECTION[0]);
        let read = read_text(&folder().join(Path::new(&path)));
        let mut text = read.map_err(|_| Error::file_not_found(name))?;
        if path != name {
            text = text.replace(REFLECTION[1], REFLECTION_ALPHA[1]);
        }
        File::from_source(name, &text)
    }
}

/// Removes the names of fields in JSON, a sixth of the set: a reader derives them from the names.
fn remove_json_names(messages: &mut [DescriptorProto]) {
    for message in messages {
        for field in &mut message.field {
            field.json_name = None;
        }
        remove_json_names(&mut message.nested_type);
    }
}

/// `STILLWELL_BLESS=1` writes it.
#[test]
fn the_descriptor_set_is_made_of_the_files() {
    let mut compiler = Compiler::with_file_resolver(Folder);
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(files()).unwrap();
    let mut set = compiler.file_descriptor_set();
    for file in &mut set.file {
        remove_json_names(&mut file.message_type);
    }
    let set = set.encode_to_vec();
    let path = folder().join("descriptors.binpb");
    if std::env::var_os("STILLWELL_BLESS").is_some() {
        fs::write(&path, &set).unwrap();
    }
    let committed = read_input(&path, 1 << 30).unwrap();
    assert!(
        committed == set,
        "{} is not made of the .proto files beside it: STILLWELL_BLESS=1 writes it",
        path.display()
    );
}

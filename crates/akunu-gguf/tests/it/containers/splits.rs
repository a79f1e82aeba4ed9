//! Models split over several GGUF files.

use akunu_gguf::{GgufFile, GgufHeader, WeightStore};
use akunu_types::DType;
use std::path::{Path, PathBuf};

/// One part with one tensor of four bytes, all of them `part`.
struct Part {
    no: u16,
    count: u16,
    n_tensors: i32,
}

fn write(folder: &Path, name: &str, part: &Part) -> PathBuf {
    let path = folder.join(name);
    let tensor = format!("blk.{}.attn_norm.weight", part.no);
    let mut header = GgufHeader::new();
    if part.no == 0 {
        header.set("general.architecture", "llama");
    }
    header.set("split.no", &part.no);
    header.set("split.count", &part.count);
    header.set("split.tensors.count", &part.n_tensors);
    header.tensor(&tensor, &[1], DType::F32);
    let mut writer = header.create(&path).expect("a valid part can be written");
    writer
        .write(&tensor, &[part.no as u8; 4])
        .expect("a valid part can be written");
    writer.finish().expect("a valid part can be written");
    path
}

fn write_all(folder: &Path, n_tensors: i32) -> Vec<PathBuf> {
    let part = |no: u16| {
        let name = format!("m-{:05}-of-00003.gguf", no + 1);
        write(
            folder,
            &name,
            &Part {
                no,
                count: 3,
                n_tensors,
            },
        )
    };
    (0..3).map(part).collect()
}

#[test]
fn any_part_opens_the_whole_model() {
    let folder = tempfile::tempdir().unwrap();
    for path in write_all(folder.path(), 3) {
        let file = GgufFile::open(&path).unwrap();
        assert_eq!(
            file.metadata().string("general.architecture").unwrap(),
            Some("llama")
        );
        assert_eq!(file.parts().len(), 3);
        for (part, tensor) in file.tensors().iter().enumerate() {
            assert_eq!(tensor.part, part);
            assert_eq!(file.view(tensor).unwrap().bytes, [part as u8; 4]);
        }
    }
}

#[test]
fn the_store_says_which_file_a_weight_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let store = WeightStore::open(&write_all(folder.path(), 3)[0]).unwrap();
    let akunu_gguf::Data::Plain(span) =
        store.tensor("layers.2.attention_norm.weight").unwrap().data
    else {
        panic!("a GGUF weight is plain");
    };
    assert_eq!(span.part, 2);
    assert_eq!(&store.parts()[2][span.range()], [2; 4]);
}

#[test]
fn a_missing_part_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_all(folder.path(), 3);
    std::fs::remove_file(&paths[1]).unwrap();
    let error = GgufFile::open(&paths[0]).unwrap_err().to_string();
    assert!(error.contains("part 2 of 3 is missing"), "{error}");
    assert!(error.contains("m-00002-of-00003.gguf"), "{error}");
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_all(folder.path(), 4);
    let error = GgufFile::open(&paths[0]).unwrap_err().to_string();
    assert!(
        error.contains("`split.tensors.count` is 4, but the parts hold 3"),
        "{error}"
    );

    write_all(folder.path(), 3);
    std::fs::copy(&paths[1], &paths[2]).unwrap();
    let error = GgufFile::open(&paths[0]).unwrap_err().to_string();
    assert!(
        error.contains("`split.no` is 1, but the file's name says 2"),
        "{error}"
    );

    let renamed = write(
        folder.path(),
        "renamed.gguf",
        &Part {
            no: 0,
            count: 3,
            n_tensors: 3,
        },
    );
    let error = GgufFile::open(&renamed).unwrap_err().to_string();
    assert!(
        error.contains("its name does not end in `-00001-of-00003.gguf`"),
        "{error}"
    );

    let alone = write(
        folder.path(),
        "alone.gguf",
        &Part {
            no: 0,
            count: 1,
            n_tensors: 1,
        },
    );
    assert!(
        GgufFile::open(alone).is_ok(),
        "one part of one is a whole model"
    );
}

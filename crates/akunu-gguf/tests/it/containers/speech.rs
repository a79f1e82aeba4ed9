//! Whisper's weights in CTranslate2's container: cut, renamed, and hostile.

use akunu_gguf::{Ct2Fault, Ct2File, FileBytes, SpeechFolder};
use akunu_types::DType;

/// A file with these f32 tensors.
fn container(spec: &str, tensors: &[(&str, &[u32], Vec<f32>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let string = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u16 + 1).to_le_bytes());
        file.extend(text.as_bytes());
        file.push(0);
    };
    file.extend(6u32.to_le_bytes());
    string(&mut file, spec);
    file.extend(3u32.to_le_bytes());
    file.extend((tensors.len() as u32).to_le_bytes());
    for (name, dims, values) in tensors {
        string(&mut file, name);
        file.push(dims.len() as u8);
        dims.iter()
            .for_each(|dim: &u32| file.extend(dim.to_le_bytes()));
        file.push(0);
        file.extend((4 * values.len() as u32).to_le_bytes());
        values
            .iter()
            .for_each(|value| file.extend(value.to_le_bytes()));
    }
    file.extend(1u32.to_le_bytes());
    string(&mut file, "decoder/projection/weight");
    string(&mut file, "decoder/embeddings/weight");
    file
}

fn whisper() -> Vec<u8> {
    let counted = |n: usize| (0..n).map(|i| i as f32).collect::<Vec<f32>>();
    container(
        "WhisperSpec",
        &[
            ("decoder/embeddings/weight", &[5, 2], counted(10)),
            (
                "decoder/layer_3/self_attention/linear_0/weight",
                &[6, 2],
                counted(12),
            ),
            ("decoder/layer_3/attention/linear_1/bias", &[4], counted(4)),
            ("encoder/layer_norm/beta", &[2], counted(2)),
        ],
    )
}

fn read(bytes: &[u8]) -> Result<Ct2File, Ct2Fault> {
    Ct2File::read(FileBytes::from_memory("model.bin", bytes.to_vec()))
}

/// Fails when q, k and v are cut elsewhere, or when a name leads to another tensor.
#[test]
fn fused_weights_are_cut_and_found_by_their_usual_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.bin"), whisper()).unwrap();
    let open = SpeechFolder::open(folder.path()).unwrap();
    let values = |name: &str| {
        let tensor = open.tensor(name).unwrap();
        assert_eq!(tensor.dtype, DType::F32);
        let numbers = tensor.bytes.chunks_exact(4);
        let numbers = numbers.map(|n| f32::from_le_bytes(n.try_into().unwrap()));
        (tensor.dims, numbers.collect::<Vec<f32>>())
    };
    let k = values("decoder.layers.3.self_attn.k_proj.weight");
    assert_eq!(k, (vec![2, 2], vec![4.0, 5.0, 6.0, 7.0]));
    let v = values("decoder.layers.3.encoder_attn.v_proj.bias");
    assert_eq!(v, (vec![2], vec![2.0, 3.0]));
    assert_eq!(values("encoder.layer_norm.bias").1, [0.0, 1.0]);
    assert_eq!(values("decoder.embed_tokens.weight").0, [5, 2]);
    let missing = open.tensor("decoder.layers.0.fc1.weight").unwrap_err();
    assert!(missing.to_string().contains("decoder.layers.0.fc1.weight"));
}

/// Fails when a second name is lost.
#[test]
fn aliases_are_tensors_too() {
    let file = read(&whisper()).unwrap();
    let output = file.tensor("decoder/projection/weight").unwrap();
    assert_eq!(file.bytes(output).len(), 40);
}

/// Fails when a file that was cut anywhere is taken for whole, or causes a panic.
#[test]
fn every_cut_is_noticed() {
    let whole = whisper();
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} bytes");
    }
}

/// Fails when any damage causes a panic or a read outside of the file: every byte is changed in turn.
#[test]
fn damage_never_panics() {
    let whole = whisper();
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= change;
            if let Ok(file) = read(&damaged) {
                let total: usize = file.tensors().iter().map(|t| file.bytes(t).len()).sum();
                assert!(total <= 2 * whole.len());
            }
        }
    }
}

/// Fails when one of these is told by another word.
#[test]
fn other_files_are_refused_by_name() {
    assert!(matches!(
        read(b"GGUF and more"),
        Err(Ct2Fault::Version(0x4655_4747))
    ));
    let mut wrong_size = whisper();
    let place = wrong_size.windows(4).position(|w| w == 40u32.to_le_bytes());
    wrong_size[place.unwrap()] = 44;
    assert!(matches!(read(&wrong_size), Err(Ct2Fault::Size { .. })));
    let folder = tempfile::tempdir().unwrap();
    let translator = container("TransformerSpec", &[]);
    std::fs::write(folder.path().join("model.bin"), translator).unwrap();
    let error = SpeechFolder::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("TransformerSpec"), "{error}");
}

/// Fails when a fused weight without dimensions is cut, which has no rows to cut.
#[test]
fn a_single_number_is_no_fused_weight() {
    let name = "decoder/layer_3/self_attention/linear_0/weight";
    let folder = tempfile::tempdir().unwrap();
    let file = container("WhisperSpec", &[(name, &[], vec![1.0])]);
    std::fs::write(folder.path().join("model.bin"), file).unwrap();
    let open = SpeechFolder::open(folder.path()).unwrap();
    let error = open.tensor("decoder.layers.3.self_attn.k_proj.weight");
    assert!(error.unwrap_err().to_string().contains(name));
}

/// Fails when a file may have so many tensors that its list takes minutes to read.
#[test]
fn more_tensors_than_a_model_has_are_refused() {
    let many = vec![("a", &[] as &[u32], vec![1.0]); 70_000];
    let error = read(&container("WhisperSpec", &many)).unwrap_err();
    assert!(
        matches!(error, Ct2Fault::Count(70_000, "tensors")),
        "{error}"
    );
}

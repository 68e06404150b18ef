use proptest::prelude::*;

use super::*;

fn profile() -> Profile {
    let kind = |name: &str, unit: &str| SampleType {
        name: name.to_owned(),
        unit: unit.to_owned(),
    };
    Profile {
        types: vec![kind("samples", "count"), kind("cpu", "nanoseconds")],
        functions: ["main", "serve", "hash"].map(str::to_owned).to_vec(),
        samples: vec![
            StackSample {
                stack: vec![0, 1, 2],
                amounts: vec![3, 30_000_000],
            },
            StackSample {
                stack: vec![0],
                amounts: vec![1, 10_000_000],
            },
        ],
        time_ns: 1_700_000_000_000_000_000,
        duration_ns: 5_000_000_000,
    }
}

#[test]
fn a_written_profile_is_read_back() {
    let bytes = profile().write().unwrap();
    assert_eq!(Profile::read(&bytes).unwrap(), profile());
}

#[test]
fn inlined_functions_are_frames_of_their_own() {
    let mut message = profile().message();
    message.location[2].line = [3, 2]
        .map(|function_id| LineMessage { function_id })
        .to_vec();
    message.sample[0].location_id = vec![3, 1];
    let read = Profile::of_message(&message).unwrap();
    assert_eq!(read.samples[0].stack, [0, 1, 2]);
}

#[test]
fn a_location_without_a_function_is_known_by_its_address() {
    let mut message = profile().message();
    message.location[2].line.clear();
    message.location[2].address = 0x10af;
    let read = Profile::of_message(&message).unwrap();
    let leaf = read.samples[0].stack.last().copied().unwrap();
    assert_eq!(read.functions[leaf as usize], "0x10af");
}

#[test]
fn numbers_outside_their_tables_are_errors() {
    let broken: [fn(&mut ProfileMessage); 3] = [
        |message| message.sample[0].location_id[0] = 9,
        |message| message.location[0].line[0].function_id = 9,
        |message| message.function[0].name = -1,
    ];
    for (breaking, table) in broken.into_iter().zip(["location", "function", "string"]) {
        let mut message = profile().message();
        breaking(&mut message);
        let error = Profile::of_message(&message).unwrap_err();
        assert!(error.to_string().contains(table), "{error}");
    }
}

#[test]
fn a_profile_that_unpacks_beyond_the_limit_is_refused() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&[0; 1000]).unwrap();
    let bytes = encoder.finish().unwrap();
    assert_eq!(unpack(&bytes, 1000).unwrap(), [0; 1000]);
    assert!(matches!(unpack(&bytes, 999), Err(ProfileError::TooLarge)));
}

proptest! {
    #[test]
    fn any_bytes_are_a_profile_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(Profile::read(&bytes));
    }

    #[test]
    fn a_damaged_profile_is_a_profile_or_an_error(at in 0_usize..200, byte in any::<u8>()) {
        let mut bytes = profile().message().encode_to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        drop(Profile::read(&bytes));
    }
}

//! Templates: what is read becomes events that are as long as was said, or says
//! what is wrong with it.

use std::path::Path;
use std::sync::OnceLock;

use stillwell_config::files::Disk;
use stillwell_config::shared::read_template;
use stillwell_config::{Loader, RunOverrides};
use stillwell_payload::{BlockSet, BuildError};
use stillwell_plan::payload::{BlockShape, TemplatePlan};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_text::Source;
use stillwell_units::{ByteSize, Seed};

/// Longer events are not made: that takes time and shows nothing.
const EVENT_MAX: u64 = 4 << 10;

/// A run that sends what `template.yaml` says.
const RUN: &str = "\
target: {command: [\"{self}\", relay]}
variants: {baseline: {}, comparison: {}}
workload: {generators: [{tcp: \"127.0.0.1:9\", payload: {template: {file: template.yaml}}}]}
goals: [ingress_throughput]
";

/// A template of any text.
pub fn template(bytes: &[u8]) {
    let folder = folder();
    let run = folder.join("experiment.yaml");
    std::fs::write(folder.join("template.yaml"), bytes).expect("the file can be written");
    match Loader::new(&Disk, &[]).run_plan(&run, &RunOverrides::default()) {
        Ok(loaded) => {
            for generator in loaded.plan.generators {
                if let PayloadFormat::Template(template) = &generator.payload.format {
                    make_events(template, generator.payload.format.clone());
                }
            }
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

/// A template of JSON.
pub fn lading_template(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let (plan, errors) = read_template(&Source::new("template.yaml", text));
    let shown = errors.to_string();
    match plan {
        Some(plan) if !errors.has_errors() => {
            make_events(&plan, PayloadFormat::TemplatedJson(plan.clone()));
        }
        _ => assert!(!shown.is_empty(), "refused without a reason"),
    }
}

/// Events of `template` are within the lengths that it says.
fn make_events(template: &TemplatePlan, format: PayloadFormat) {
    let lengths = template
        .lengths()
        .expect("it was measured when it was read");
    assert!(lengths.low <= lengths.high);
    if lengths.high > EVENT_MAX {
        return;
    }
    let plan = PayloadPlan {
        format,
        blocks: BlockShape::UpTo {
            maximum: ByteSize::new(2 * EVENT_MAX),
        },
        cache: ByteSize::new(2 * EVENT_MAX),
        repeats: false,
    };
    let set = match BlockSet::build(&plan, plan.cache, Seed::from_number(1), None) {
        Ok(set) => set,
        Err(error) => {
            let _shown = error.to_string();
            assert!(!matches!(error, BuildError::MaximumTooSmall { .. }));
            return;
        }
    };
    let all = set.run(0, set.len());
    let mut start = 0;
    for end in all.event_ends() {
        let length = (end - start) as u64;
        assert!(lengths.low <= length && length <= lengths.high);
        start = end;
    }
}

/// The folder of this process, with a run in it; the script that starts the fuzzer
/// removes it.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let run = folder.path().join("experiment.yaml");
        std::fs::write(run, RUN).expect("the file can be written");
        folder
    });
    folder.path()
}

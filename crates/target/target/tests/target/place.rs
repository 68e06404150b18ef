//! Namespaces, mounts and CPUs.

use std::net::TcpListener;
use std::sync::mpsc::sync_channel;

use stillwell_plan::placement::CpuChoice;
use stillwell_plan::target::MountPlan;
use stillwell_scope::{Place, Scope, Token};
use stillwell_target::{MountError, StartError, divide, new_network, online};
use stillwell_units::Nanos;

use crate::support::{Fixture, ended};

#[test]
fn two_networks_have_the_same_port_twice() {
    let networks = [new_network(), new_network()];
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(2);
    for (index, network) in networks.into_iter().enumerate() {
        let network = match network {
            Ok(network) => network,
            Err(error) => {
                println!("SKIPPED: {:?}", error.note());
                return;
            }
        };
        let place = Place {
            cpus: None,
            network: Some(network),
        };
        let sender = sender.clone();
        scope
            .thread(place, &format!("bind-{index}"), move |_| {
                sender.send(TcpListener::bind(("127.0.0.1", 4)))?;
                Ok(())
            })
            .unwrap();
    }
    let listeners: Vec<_> = receiver.iter().take(2).collect();
    assert!(listeners.iter().all(Result::is_ok), "{listeners:?}");
    scope.close(Nanos::from_secs(20));
}

/// Runs it, unless mounts are not permitted here.
fn run(fixture: &Fixture) -> Option<String> {
    match fixture.try_start() {
        Ok(target) => {
            ended(&target);
            Some(fixture.stdout())
        }
        Err(StartError::Mount(error @ MountError::Refused { .. })) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn folders_are_mounted_at_fixed_places_for_the_target_alone() {
    let mut fixture = Fixture::new(
        "cat /etc/stillwell-new/one/file /etc/stillwell-new/two /opt/file
         test -s /etc/passwd && echo others stay
         touch /opt/x 2>/dev/null || echo read-only",
    );
    let source = fixture.path("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), "shown\n").unwrap();
    fixture.mount(&source, "/etc/stillwell-new/one");
    fixture.mount(&source.join("file"), "/etc/stillwell-new/two");
    fixture.mount(&source, "/opt");
    let Some(stdout) = run(&fixture) else { return };
    assert_eq!(stdout, "shown\nshown\nshown\nothers stay\nread-only\n");
    assert!(!std::path::Path::new("/etc/stillwell-new").exists());
    assert!(!std::path::Path::new("/opt/file").exists());
}

/// Nothing could be shown at `/data` on a host that has no such folder.
#[test]
fn a_folder_is_shown_right_below_the_root_and_all_else_stays() {
    let mut fixture = Fixture::new(
        "cat /stillwell-data/file /stillwell-deep/er/file
         touch /stillwell-data/x 2>/dev/null || echo read-only
         echo kept >/stillwell-state/written
         test -s /etc/passwd && test -d /proc/self && echo others stay
         test $PWD = $WHERE && echo where it was",
    );
    let (source, state) = (fixture.path("source"), fixture.path("made/state"));
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), "shown\n").unwrap();
    fixture.mount(&source, "/stillwell-data");
    fixture.mount(&source, "/stillwell-deep/er");
    let where_it_is = fixture.options.state.to_string_lossy().into_owned();
    let child = fixture.child();
    child.mounts.push(MountPlan {
        source: state.clone(),
        at: "/stillwell-state".into(),
        writable: true,
    });
    let variables = &mut child.environment.variables;
    variables.insert("WHERE".to_owned(), where_it_is);
    let Some(stdout) = run(&fixture) else { return };
    assert_eq!(
        stdout,
        "shown\nshown\nread-only\nothers stay\nwhere it was\n"
    );
    let written = std::fs::read_to_string(state.join("written"));
    assert_eq!(written.unwrap(), "kept\n");
    for at in ["/stillwell-data", "/stillwell-deep", "/stillwell-state"] {
        assert!(!std::path::Path::new(at).exists(), "{at}");
    }
}

#[test]
fn a_target_runs_on_its_cpus() {
    let division = divide(&online(), &CpuChoice::Auto, &CpuChoice::Auto);
    let mut fixture = Fixture::new("grep Cpus_allowed_list /proc/self/status");
    fixture.options.cpus = division.target.clone();
    ended(&fixture.try_start().unwrap());
    let last = division.target.unwrap().pop().unwrap();
    let stdout = fixture.stdout();
    assert!(stdout.trim().ends_with(&last.to_string()), "{stdout}");
}

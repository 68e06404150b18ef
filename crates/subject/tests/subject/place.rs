//! Namespaces, mounts and CPUs.

use std::net::TcpListener;
use std::sync::mpsc::sync_channel;

use stillwell_plan::CpuChoice;
use stillwell_scope::{Place, Scope, Token};
use stillwell_subject::{MountError, StartError, divide, new_network, online};
use stillwell_units::Nanos;

use crate::support::{Rig, ended};

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
fn run(rig: &Rig) -> Option<String> {
    match rig.try_start() {
        Ok(subject) => {
            ended(&subject);
            Some(rig.stdout())
        }
        Err(StartError::Mount(error @ MountError::Refused { .. })) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn folders_are_shown_at_fixed_places_to_the_subject_alone() {
    let mut rig = Rig::new(
        "cat /etc/stillwell-new/one/file /etc/stillwell-new/two /opt/file
         test -s /etc/passwd && echo others stay
         touch /opt/x 2>/dev/null || echo read-only",
    );
    let source = rig.path("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), "shown\n").unwrap();
    rig.mount(&source, "/etc/stillwell-new/one");
    rig.mount(&source.join("file"), "/etc/stillwell-new/two");
    rig.mount(&source, "/opt");
    let Some(stdout) = run(&rig) else { return };
    assert_eq!(stdout, "shown\nshown\nshown\nothers stay\nread-only\n");
    assert!(!std::path::Path::new("/etc/stillwell-new").exists());
    assert!(!std::path::Path::new("/opt/file").exists());
}

#[test]
fn a_subject_runs_on_its_cpus() {
    let division = divide(&online(), &CpuChoice::Auto, &CpuChoice::Auto);
    let mut rig = Rig::new("grep Cpus_allowed_list /proc/self/status");
    rig.options.cpus = division.subject.clone();
    ended(&rig.try_start().unwrap());
    let last = division.subject.unwrap().pop().unwrap();
    let stdout = rig.stdout();
    assert!(stdout.trim().ends_with(&last.to_string()), "{stdout}");
}

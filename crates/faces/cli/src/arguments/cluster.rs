//! Arguments of loads on several machines, and of `stillwell cluster`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::count::within;
use super::{LoadArguments, ObserveArguments, RunArguments};

/// The job of a command on several machines.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Several machines, see docs/cluster.md")]
pub(crate) struct JobArguments {
    /// Store of jobs and results: a folder that all machines share, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE", requires = "on")]
    pub(crate) store: Option<PathBuf>,
    /// Name of the job in the store; if the command is killed, the same command with the same
    /// name continues it [default: a random name]
    #[arg(long, value_name = "NAME", requires = "on")]
    pub(crate) job: Option<String>,
    /// Option for the engine, such as --partition=bench for sbatch or --image=NAME for
    /// Kubernetes (see docs/kubernetes-load.md); repeatable
    #[arg(long, value_name = "WORD", requires = "on", allow_hyphen_values = true)]
    pub(crate) engine_option: Vec<String>,
}

/// Generators on several machines.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Several machines, see docs/cluster.md")]
pub(crate) struct LoadFleetArguments {
    /// Send the load from several generators, which this engine starts
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        requires = "store",
        conflicts_with_all = [
            "scenario", "termination_predicate", "failure_predicate", "keep_going", "cpus",
            "stats_sink", "stats_listen", "trace"
        ]
    )]
    pub(crate) on: Option<EngineName>,
    /// Number of generators; each has --threads threads, and rate, requests and
    /// connections are totals over all of them
    #[arg(long, value_name = "N", default_value_t = 2, requires = "on", value_parser = within::<u16>(1..=4096))]
    pub(crate) generators: u16,
    #[command(flatten)]
    pub(crate) job: JobArguments,
}

/// Experiments on several machines.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Several machines, see docs/cluster.md")]
pub(crate) struct SuiteFleetArguments {
    /// Run each experiment on one node, which this engine allocates; with --generators,
    /// run the target, sinks and generators of each run on separate nodes
    #[arg(long, value_enum, value_name = "ENGINE", requires = "store")]
    pub(crate) on: Option<EngineName>,
    /// Number of machines with generators, in addition to the target's machine; rates and
    /// connections are totals over all of them
    #[arg(long, value_name = "N", requires = "on", value_parser = within::<u16>(1..=4096))]
    pub(crate) generators: Option<u16>,
    /// Number of machines among which the sinks are divided; 0 runs them on the target's machine
    #[arg(long, value_name = "N", default_value_t = 0, requires = "generators", value_parser = within::<u16>(0..=4096))]
    pub(crate) sinks: u16,
    #[command(flatten)]
    pub(crate) job: JobArguments,
}

/// One run on several machines.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Several machines, see docs/cluster.md")]
pub(crate) struct RunFleetArguments {
    /// Run the target, sinks and generators as tasks that this engine starts
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        requires = "store",
        conflicts_with_all = [
            "target_pid", "target_container", "target_image", "stats_sink", "stats_listen"
        ]
    )]
    pub(crate) on: Option<EngineName>,
    /// Number of machines with generators; rates and connections are totals over all of them
    #[arg(long, value_name = "N", default_value_t = 1, requires = "on", value_parser = within::<u16>(1..=4096))]
    pub(crate) generators: u16,
    /// Number of machines among which the sinks are divided; 0 runs them on the target's machine
    #[arg(long, value_name = "N", default_value_t = 0, requires = "on", value_parser = within::<u16>(0..=4096))]
    pub(crate) sinks: u16,
    #[command(flatten)]
    pub(crate) job: JobArguments,
}

/// Engines, which start tasks on machines.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum EngineName {
    /// Processes on this machine, to try it out.
    Local,
    /// An array of jobs in Slurm.
    Slurm,
    /// An Indexed Job in Kubernetes.
    Kubernetes,
}

/// `stillwell cluster`.
#[derive(Args, Debug)]
pub(crate) struct ClusterArguments {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// Commands about a job.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Print the state of each generator or task
    Status(ClusterStatusArguments),
    /// Print the logs of all generators and tasks
    Logs(ClusterJobArguments),
    /// End all generators and tasks of a job early
    Cancel(ClusterJobArguments),
    /// Print the job that `load`, `observe` or `run` with the same options would submit,
    /// such as a Kubernetes Job in YAML
    Render(Box<RenderArguments>),
    /// Run one generator; engines start it
    #[command(hide = true)]
    Generate(GenerateArguments),
}

/// A command on several machines whose job is printed. Without its name it is `load`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct RenderArguments {
    #[command(subcommand)]
    pub(crate) command: Option<RenderCommand>,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
}

/// Commands whose job is printed.
#[derive(Debug, Subcommand)]
pub(crate) enum RenderCommand {
    /// Print the job of a load
    Load(Box<LoadArguments>),
    /// Print the job of a run with target, sinks and generators
    Observe(Box<ObserveArguments>),
    /// Print the job of experiments
    Run(Box<RunArguments>),
}

/// A generator.
#[derive(Args, Debug)]
pub(crate) struct GenerateArguments {
    #[command(flatten)]
    pub(crate) job: ClusterJobArguments,
    /// File with the load and its secrets as typed
    #[arg(long, value_name = "FILE")]
    pub(crate) secrets: Option<PathBuf>,
}

/// The state of a job.
#[derive(Args, Debug)]
pub(crate) struct ClusterStatusArguments {
    #[command(flatten)]
    pub(crate) job: ClusterJobArguments,
    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = StatusForm::Text)]
    pub(crate) format: StatusForm,
}

/// Form of the state of a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StatusForm {
    /// One line for each generator or task
    Text,
    /// One JSON object
    Json,
}

/// A job in a store.
#[derive(Args, Debug)]
pub(crate) struct ClusterJobArguments {
    /// The store: a folder, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: PathBuf,
    /// Name of the job
    #[arg(long, value_name = "NAME")]
    pub(crate) job: String,
}

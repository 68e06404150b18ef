//! Validated plans, as data only.
//!
//! A plan is what the configuration door lets through. It cannot be wrong in a
//! way that a check of the text could detect; it holds no handle, reads no
//! clock and does nothing. The running half carries a [`RigPlan`] out, the
//! capture keeps it word for word, and the reading half reads it again, so
//! every type here serialises.
//!
//! * one observed run: [`RigPlan`] of [`GeneratorPlan`]s, [`SinkPlan`]s, one
//!   [`TargetPlan`], an [`ObserverPlan`], [`PhasesPlan`] and [`StepPlan`]s;
//! * one comparison: [`ExperimentPlan`] of a rig, [`VariantPlan`]s,
//!   [`GoalPlan`]s and [`CheckPlan`]s;
//! * several: [`SuitePlan`];
//! * one workload for several programs: [`TargetsPlan`] of [`ComparedTargetPlan`]s;
//! * requests to a service, without a target: [`LoadPlan`].

mod bench;
mod capacity;
mod check;
mod disk;
mod estimate;
mod experiment;
mod generator;
mod goal;
mod link;
mod load;
mod observer;
mod payload;
mod phases;
mod placement;
mod rig;
mod serve;
mod sink;
mod stamp;
mod step;
mod stopping;
mod target;
mod targets;
mod tls;

pub use bench::BenchPlan;
pub use capacity::{CapacityBound, CapacityBoundError, CapacityFigure};
pub use check::{Aggregation, CheckPlan, SeriesSelector};
pub use disk::{DiskKind, DiskPlan, FolderDiskPlan};
pub use estimate::TimeEstimate;
pub use experiment::{
    BinarySource, ExperimentPlan, FamilyPlan, GitSource, OperatingPoint, ReportLink, SuitePlan,
    VariantPlan,
};
pub use generator::{
    AcknowledgedBy, AcknowledgedPlan, AmqpPlan, ContainerPlan, EventsDefault, ExchangePlan,
    ExecutablePlan, FileLayout, FileTreePlan, GeneratorPlan, HecAcknowledgements, KafkaAcks,
    KafkaCompression, KafkaPlan, KubernetesKind, KubernetesPlan, Login, MessageOf, NatsAcks,
    NatsLogin, NatsPlan, ProcFsPlan, ProcessTreePlan, ProducerPlan, RatePlan, RateShape, RateUnit,
    RequestsPlan, StampForms, StreamTarget, TransportPlan, TransportProperties, TransportTarget,
    WhenFull, WordsPlan,
};
pub use goal::{
    Direction, GoalMetric, GoalMetricError, GoalPlan, LatencyQuantile, Reduction, Scale, SeriesGoal,
};
pub use link::{
    INPUT_OURS, INPUT_TARGET, LinkChange, LinkPlan, LinkUses, NetworkPlan, OUTPUT_SINKS,
    OUTPUT_TARGET,
};
pub use load::{
    AnswerHeadersPlan, BodyPlan, ConnectingPlan, EndpointPlan, GrpcMessages, GrpcPlan,
    IdleStrategy, LoadCurve, LoadPace, LoadPacing, LoadPlan, LoadPlanError, LoadPlanParts,
    LoadProtocol, LoadStep, Overflow, PredicatePlan, ReceiverPlan, RequestPlan, Reuse, Spacing,
    SpanProtocol, SpanSinkPlan, StatsPagePlan, StatsProtocol, StatsSinkPlan, TelemetryPlan,
    TraceHeaders, TracePlan, TunnelPlan, TunnelProtocol, UntilPlan,
};
pub use observer::{
    InspectorPlan, KernelSeries, ObserverPlan, ProfilePlan, ScrapeFormat, ScrapePlan,
};
pub use payload::{
    Alphabet, BulkAction, CefHeader, ElasticsearchPlan, GelfEnd, HecEncoding, InfluxPlan, LokiPlan,
    SERIES_MAX, TEMPLATE_DEPTH_MAX, TEMPLATE_EVENT_MAX, TemplateError, TemplatePart, TemplatePlan,
    TemplateValue, TimeField, TimePattern, TimePatternError, TimeText, TimestampedPlan,
    is_index_name,
};
pub use payload::{
    Between, BlockShape, ContextRoom, DOGSTATSD_CONTEXTS_MAX, DogstatsdKinds, DogstatsdMetrics,
    DogstatsdPlan, DogstatsdTimestamp, DogstatsdValue, EventTimes, NetflowPlan, NetflowVersion,
    OTLP_CONTEXTS_MAX, OtlpContexts, OtlpHistogramLimits, OtlpLogsPlan, OtlpMetricKinds,
    OtlpMetricsPlan, OtlpSeverities, OtlpTracesPlan, PATTERN_TEXTS_MAX, PatternError,
    PayloadFormat, PayloadPlan, REMOTE_WRITE_SERIES_MAX, RemoteWritePlan, ReplayCut, ReplayEnd,
    ReplayPlan, TRACE_AGENT_CONTEXTS_MAX, TRACE_DEPTH_MAX, TopologyError, TraceAgentPlan,
    TraceAttribute, TraceCall, TraceEncoding, TraceOperation, TraceService, TraceValue, TraceWork,
    expand_all,
};
pub use phases::{Phase, PhasesPlan};
pub use placement::{CpuChoice, IsolationPlan, PlacementPlan, Wanted};
pub use rig::RigPlan;
pub use serve::{
    Admission, AnswerPlan, DelayExpression, Expression, ExpressionError, ExpressionInputs,
    ExpressionKind, ExpressionValue, Fault, FaultExpression, FaultsPlan, FilterSet, LimitAnswer,
    RESPONSE_BODY_BYTES_MAX, RateLimitPlan, ResponseDelay, ResponseHeader, ResponseOptions,
    ResponseOptionsError, ServeAdminPlan, ServeHeaders, ServeListenerPlan, ServePlan,
    ServeProtocols, TokenBucket,
};
pub use sink::{
    IntakeService, LinesPlan, OpenmetricsPlan, SeriesRecord, SinkBody, SinkPlan, SinkProtocol,
};
pub use stamp::{PrefixFraming, StampForm, StampPlan};
pub use step::{
    DiskChange, DiskLimits, Refusal, RefusePlan, SinkChange, StepAction, StepPlan, TargetChange,
    TargetSignal,
};
pub use stopping::{
    DesignPlan, PAIRS_CONFIRM_MIN, PAIRS_MAX_DEFAULT, PAIRS_MIN, PAIRS_OPEN_DEFAULT, StoppingPlan,
    WarmupPlan,
};
pub use target::{
    ChildPlan, ContainerOrigin, ContainerTarget, EnvironmentPlan, ImagePlan, MountPlan, Places,
    ReadyProbe, StopPlan, TargetKind, TargetPlan,
};
pub use targets::{ComparedTargetPlan, Delivery, Durability, RUNS_DEFAULT, RUNS_MAX, TargetsPlan};
pub use tls::{
    Alpn, ClientTlsPlan, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites,
    TlsVersion, Verification,
};

package plan

// A RuleID identifies a rule. Logs, events, metrics and podd why refer to a rule by its
// ID, which therefore stays the same when its sentence changes.
type RuleID string

// Pod rules.
const (
	RuleSourcesNotRead       RuleID = "SourcesNotRead"
	RuleRuntimeUnreachable   RuleID = "RuntimeUnreachable"
	RuleAdoptForeign         RuleID = "AdoptForeign"
	RuleNameInUse            RuleID = "NameInUse"
	RuleKeepEarlierVersion   RuleID = "KeepEarlierVersion"
	RuleStop                 RuleID = "Stop"
	RuleRemoved              RuleID = "Removed"
	RuleEarlierDirectoryLeft RuleID = "EarlierDirectoryLeft"
	RuleFinished             RuleID = "Finished"
	RuleSandboxLost          RuleID = "SandboxLost"
	RuleRestartUndecided     RuleID = "RestartUndecided"
	RuleJournalUnreadable    RuleID = "JournalUnreadable"
	RuleNotAdmitted          RuleID = "NotAdmitted"
	RuleRuntimeNotReady      RuleID = "RuntimeNotReady"
	RuleNetworkNotReady      RuleID = "NetworkNotReady"
	RuleObjectsMissing       RuleID = "ObjectsMissing"
	RuleNoSandbox            RuleID = "NoSandbox"
	RuleInit                 RuleID = "Init"
	RuleRun                  RuleID = "Run"
)

// Container rules.
const (
	RuleRestartRequested     RuleID = "RestartRequested"
	RuleStartupProbeFailed   RuleID = "StartupProbeFailed"
	RuleLivenessProbeFailed  RuleID = "LivenessProbeFailed"
	RulePostStartHookFailed  RuleID = "PostStartHookFailed"
	RuleTerminating          RuleID = "Terminating"
	RulePostStartHookPending RuleID = "PostStartHookPending"
	RuleContainerChanged     RuleID = "ContainerChanged"
	RuleResizeByRestart      RuleID = "ResizeByRestart"
	RuleResizeInPlace        RuleID = "ResizeInPlace"
	RuleNotStarted           RuleID = "NotStarted"
	RuleNotReady             RuleID = "NotReady"
	RuleRunning              RuleID = "Running"
	RuleStateUnknown         RuleID = "StateUnknown"
	RuleExitCodeUnknown      RuleID = "ExitCodeUnknown"
	RuleCompleted            RuleID = "Completed"
	RuleInitCompleted        RuleID = "InitCompleted"
	RuleNotItsTurn           RuleID = "NotItsTurn"
	RuleSizeNotAdmitted      RuleID = "SizeNotAdmitted"
	RuleCreated              RuleID = "Created"
	RuleCrashBackOff         RuleID = "CrashBackOff"
	RuleStartFailed          RuleID = "StartFailed"
	RuleImageMissing         RuleID = "ImageMissing"
	RuleVolumesMissing       RuleID = "VolumesMissing"
	RuleNotObserved          RuleID = "NotObserved"
	RuleStart                RuleID = "Start"
)

// Container rules that only ephemeral containers have.
const (
	RuleEphemeralExited  RuleID = "EphemeralExited"
	RuleStarting         RuleID = "Starting"
	RuleEphemeralRemoved RuleID = "EphemeralRemoved"
	RuleTargetNotRunning RuleID = "TargetNotRunning"
)

// Container rules of pods without a ready sandbox. Rules of other pods apply, too.
const (
	RuleSandboxNotReady    RuleID = "SandboxNotReady"
	RuleEarlierVersionRuns RuleID = "EarlierVersionRuns"
)

// Additional rules.
const (
	RulePreparing           RuleID = "Preparing"
	RulePodResized          RuleID = "PodResized"
	RuleRunsWithoutObjects  RuleID = "RunsWithoutObjects"
	RuleResizeNotAdmitted   RuleID = "ResizeNotAdmitted"
	RuleVolumesOutdated     RuleID = "VolumesOutdated"
	RuleEditDuringShutdown  RuleID = "EditDuringShutdown"
	RuleEditWaits           RuleID = "EditWaits"
	RuleTerminationMessages RuleID = "TerminationMessages"
	RuleActiveDeadline      RuleID = "ActiveDeadline"
	RuleCleanup             RuleID = "Cleanup"
)

// A description is what a rule's row says to users.
type description struct{ verb, sentence string }

// descriptions contains the descriptions of the rules in all tables.
var descriptions = describeRules()

func describeRules() map[RuleID]description {
	all := map[RuleID]description{}
	for _, r := range podRules {
		all[r.id] = description{string(r.phase), r.sentence}
	}
	for _, table := range [][]containerRule{containerRules, ephemeralRules, preparingRules, keepEarlierRules} {
		for _, r := range table {
			if r.sentence != "" { // else it is in another table
				all[r.id] = description{r.verb, r.sentence}
			}
		}
	}
	for _, r := range additionalRules {
		all[r.id] = description{r.verb, r.sentence}
	}
	return all
}

// Verb returns what podd does while the rule applies: the phase of a pod rule, or a verb. It
// returns "" for an unknown rule.
func (id RuleID) Verb() string { return descriptions[id].verb }

// Sentence returns the sentence that explains the rule to users, without a capital letter or
// a full stop, so that it can follow a colon; "" for an unknown rule. Decision.Why and
// Step.Why add what is specific to a pod.
func (id RuleID) Sentence() string { return descriptions[id].sentence }

package plan

// A RuleID identifies a rule in logs, events, metrics and the output of podd why. It does not
// change when the text of the rule changes.
type RuleID string

// Pod rules.
const (
	RuleSourcesNotRead       RuleID = "SourcesNotRead"
	RuleEvictedUnreachable   RuleID = "EvictedUnreachable"
	RuleRuntimeUnreachable   RuleID = "RuntimeUnreachable"
	RuleAdoptForeign         RuleID = "AdoptForeign" // stops a pod of another agent, whose name podd takes over
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
	RuleRestartAllContainers RuleID = "RestartAllContainers"
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

// Container rules that apply only while all containers are restarted together.
const (
	RuleStoppedWithAll  RuleID = "StoppedWithAll"
	RuleRestartsWithAll RuleID = "RestartsWithAll"
)

// Container rules that apply only to ephemeral containers.
const (
	RuleEphemeralExited  RuleID = "EphemeralExited"
	RuleStarting         RuleID = "Starting"
	RuleEphemeralRemoved RuleID = "EphemeralRemoved"
	RuleTargetNotRunning RuleID = "TargetNotRunning"
)

// Container rules that apply only to pods without a ready sandbox.
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
	RuleKillEvicted         RuleID = "KillEvicted"
	RuleCleanup             RuleID = "Cleanup"
)

// A ruleDescription contains the texts of a rule for users.
type ruleDescription struct{ verb, sentence string }

// ruleDescriptions contains the descriptions of the rules in all tables.
var ruleDescriptions = describeRules()

// describeRules returns the descriptions of the rules in all tables.
func describeRules() map[RuleID]ruleDescription {
	descriptions := map[RuleID]ruleDescription{}
	for _, r := range podRules {
		descriptions[r.id] = ruleDescription{string(r.phase), r.sentence}
	}
	for _, table := range [][]containerRule{containerRules, restartRules, ephemeralRules, preparingRules, keepEarlierRules} {
		for _, r := range table {
			if r.sentence != "" { // a row without a sentence uses the sentence of the same rule in another table
				descriptions[r.id] = ruleDescription{r.verb, r.sentence}
			}
		}
	}
	for _, r := range additionalRules {
		descriptions[r.id] = ruleDescription{r.verb, r.sentence}
	}
	return descriptions
}

// Verb returns a verb for what podd does while the rule applies. For a pod rule, it returns the
// phase. It returns "" for an unknown rule.
func (id RuleID) Verb() string { return ruleDescriptions[id].verb }

// Sentence returns the sentence that explains the rule to users; "" for an unknown rule. It has no
// capital letter and no full stop, so that it can follow a colon. Decision.Why and Step.Why contain
// the details about a pod.
func (id RuleID) Sentence() string { return ruleDescriptions[id].sentence }

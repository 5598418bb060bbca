package server

import "podd/manifest/redact"

// RedactPodView returns a copy of v for clients that are not authenticated. The pod is redacted by
// redact.Pod, and texts that can quote the output of a program are omitted. RedactPodView copies
// each field explicitly, so that a new field of PodView is omitted by default.
func RedactPodView(v *PodView) *PodView {
	redacted := &PodView{
		Pod: redact.Pod(v.Pod), Path: v.Path, Line: v.Line, IsCurrent: v.IsCurrent, OutdatedRunningContainers: v.OutdatedRunningContainers, OutdatedStoppingContainers: v.OutdatedStoppingContainers,
		SandboxID: v.SandboxID, Exists: v.Exists, Ready: v.Ready,
		Phase: v.Phase, Rule: v.Rule, WhyRule: v.WhyRule, NeedsUser: v.NeedsUser, Since: v.Since, NextCheck: v.NextCheck, Pulls: v.Pulls,
	}
	for _, s := range v.Decisions {
		redacted.Decisions = append(redacted.Decisions, DecisionView{
			Container: s.Container, Rule: s.Rule, Reason: s.Reason, Crashes: s.Crashes, Until: s.Until, NeedsUser: s.NeedsUser,
		})
	}
	for _, e := range v.LastExits {
		redacted.LastExits = append(redacted.LastExits, ExitView{
			Container: e.Container, ExitCode: e.ExitCode, Reason: e.Reason, Started: e.Started, Finished: e.Finished,
		})
	}
	return redacted
}

// RedactProblem returns a copy of p for clients that are not authenticated, without the private
// values of v.Pod. v may be nil. The code that reports a problem must not quote private values
// either. RedactProblem is an additional protection.
func RedactProblem(p ProblemView, v *PodView) ProblemView {
	if v != nil {
		p.Message = redact.StatusText(p.Message, v.Pod)
	}
	return p
}

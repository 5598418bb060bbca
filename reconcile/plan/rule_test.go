package plan

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"

	"podd/runtime"
)

// TestRuleDescriptions checks that each rule has a verb and a sentence, that the sentence contains
// no number, and that no table has two rows of the same rule.
func TestRuleDescriptions(t *testing.T) {
	tables := map[string][]RuleID{}
	for _, r := range podRules {
		tables["pod"] = append(tables["pod"], r.id)
	}
	for name, rules := range map[string][]containerRule{
		"container": containerRules, "restart": restartRules, "ephemeral": ephemeralRules, "preparing": preparingRules, "keepEarlier": keepEarlierRules,
	} {
		for _, r := range rules {
			tables[name] = append(tables[name], r.id)
			if r.verb != r.id.Verb() {
				t.Errorf("%s rule %s: got verb %q, want %q as in other tables", name, r.id, r.verb, r.id.Verb())
			}
		}
	}
	for _, r := range additionalRules {
		tables["additional"] = append(tables["additional"], r.id)
	}
	for name, ids := range tables {
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				t.Errorf("table %s: got two rows of rule %s, want one", name, id)
			}
			if id == "" || id.Verb() == "" || id.Sentence() == "" {
				t.Errorf("table %s, rule %q: got verb %q and sentence %q, want an ID, a verb and a sentence", name, id, id.Verb(), id.Sentence())
			}
			if s := id.Sentence(); strings.ContainsFunc(s, unicode.IsDigit) || strings.HasSuffix(s, ".") {
				t.Errorf("%s rule %s: got sentence %q, want one without numbers and without a full stop", name, id, s)
			}
		}
	}
	if RuleID("Unknown").Verb()+RuleID("Unknown").Sentence() != "" {
		t.Error("unknown rule: got a verb or a sentence, want none")
	}
}

// TestAdditionalRules checks the inputs for which each additional rule applies. An additional rule
// shows in the decision: as WhyRule, as an action or as a wake time. The pod runs, unless the rule applies
// only to other pods.
func TestAdditionalRules(t *testing.T) {
	tests := map[string]struct {
		change  func(*Input)
		rule    RuleID // "" means RuleRun
		whyRule RuleID
		action  Action        // nil: none
		wake    time.Duration // 0: none
		problem bool
	}{
		"nothing to do": {change: func(*Input) {}},
		"preparation in progress": {
			change: func(in *Input) { in.InFlight["dir/u"] = PrepareVolumes{UID: "u"} },
			action: PrepareVolumes{UID: "u"},
		},
		"creation of the sandbox in progress": {
			change: func(in *Input) { in.InFlight["sandbox"] = RunSandbox{} },
			action: RunSandbox{},
		},
		"pod not resized": {
			change: func(in *Input) {
				resizes(in, small, large)
				in.History.Sizes = map[string]Size{"c": {Value: large}}
			},
			action: ResizePod{SandboxID: "s-u"},
		},
		"resize of the pod failed": {
			change: func(in *Input) {
				resizes(in, small, large)
				in.History.Sizes = map[string]Size{"c": {Value: large}}
				in.History.ResizePodFailure = Failure{Message: "no", RetryAt: in.Now.Add(time.Second)}
			},
			whyRule: RulePodResized, wake: time.Second, problem: true,
		},
		"resize not admitted": {
			change: func(in *Input) {
				resizes(in, small, large)
				in.Verdict = Verdict{Answer: Reject, Message: "no cpu"}
			},
			whyRule: RuleResizeNotAdmitted, problem: true,
		},
		"object missing": {
			change:  func(in *Input) { in.Objects.MissingMessage = "a Secret" },
			whyRule: RuleRunsWithoutObjects, problem: true,
		},
		"content of an object changed": {
			change: func(in *Input) { in.Objects.FilesDigest = "new" },
			action: UpdateVolumes{UID: "u", FilesDigest: "new"},
		},
		"update of the volumes failed": {
			change: func(in *Input) {
				in.Objects.FilesDigest = "new"
				in.History.UpdateFailure = Failure{Message: "no", RetryAt: in.Now.Add(time.Second)}
			},
			whyRule: RuleVolumesOutdated, wake: time.Second, problem: true,
		},
		"successor without an image": {
			change:  func(in *Input) { in.Successor = versioned("next") },
			whyRule: RuleEditWaits, action: EnsureImage{Container: "app", Image: "a:1", Policy: "IfNotPresent", ForSuccessor: true},
		},
		"successor during a shutdown": {
			change:  func(in *Input) { in.Successor, in.Node.ShuttingDown = versioned("next"), true },
			whyRule: RuleEditDuringShutdown,
		},
		"unread termination message": {
			change: func(in *Input) {
				old := runtime.Container{ID: "old", Name: "app", State: runtime.Exited, StartedAt: in.Now, Annotations: map[string]string{runtime.AnnotationTerminationMessagePath: "/m"}}
				in.Observed[0].Containers[0].Attempt = 1
				in.Observed[0].Containers = append(in.Observed[0].Containers, old)
			},
			action: ReadMessage{Container: "app", ID: "old"},
		},
		"deadline ahead": {
			change: func(in *Input) {
				seconds := int64(5)
				in.Desired.Object.Spec.ActiveDeadlineSeconds, in.History.StartTime = &seconds, in.Now
			},
			wake: 5 * time.Second,
		},
		"evicted pod that the runtime does not stop": {
			change: func(in *Input) {
				in.History.Finished = &PodEnd{UID: "u", Hash: in.Desired.Hash, Size: in.Desired.PodSize(), Failed: true, Reason: ReasonEvicted, At: in.Now.Add(-time.Minute)}
				in.History.CleanupFailures = map[string]Failure{"stop/c": {Message: "no response", RetryAt: in.Now.Add(time.Second)}}
			},
			rule: RuleFinished, whyRule: RuleKillEvicted, action: KillProcesses{UID: "u", SandboxID: "s-u"}, wake: time.Second, problem: true,
		},
		"directory of another version": {
			change: func(in *Input) { in.PodDirs = []PodDir{{UID: "old"}} },
			action: RemoveDir{UID: "old"},
		},
		"removal failed": {
			change: func(in *Input) {
				in.PodDirs = []PodDir{{UID: "old"}}
				in.History.CleanupFailures = map[string]Failure{"dir/old": {Message: "no", RetryAt: in.Now.Add(time.Second)}}
			},
			whyRule: RuleCleanup, wake: time.Second, problem: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := runs()
			in.Desired.Object.Spec.RestartPolicy = v1.RestartPolicyAlways
			test.change(&in)
			d := Next(in)
			var first Action
			if len(d.Actions) > 0 {
				first = d.Actions[0]
			}
			wake := time.Duration(0)
			if !d.WakeAt.IsZero() {
				wake = d.WakeAt.Sub(in.Now)
			}
			if rule := cmp.Or(test.rule, RuleRun); d.Rule != rule || d.WhyRule != test.whyRule || first != test.action || wake != test.wake || d.NeedsUser != test.problem {
				t.Errorf("got rule %s, WhyRule %q, first action %v, wake time in %s and NeedsUser %t, want %s, %q, %v, %s and %t\n%s",
					d.Rule, d.WhyRule, first, wake, d.NeedsUser, rule, test.whyRule, test.action, test.wake, test.problem, d)
			}
		})
	}
}

package event

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
	"podd/runtime"
)

// Decision is a decision with what it was made from.
type Decision struct {
	Key types.NamespacedName
	// Pod is the version in force, nil for none.
	Pod         *manifest.Pod
	Before, Now plan.Decision
	Observed    []runtime.Incarnation
	// Endings are plan.History's.
	Endings map[string]plan.Ending
	// Wait is plan.Objects's, of the version in force.
	manifest.Wait
	At time.Time
}

// Decided tells what is new in a decision.
func Decided(d Decision) []Event {
	if d.Pod == nil {
		return d.stops()
	}
	var all []Event
	s := On(d.Pod, d.At)
	if d.Now.Rule == plan.SandboxLost && d.Before.Rule != plan.SandboxLost {
		all = append(all, s.Normal("SandboxChanged", "", "Pod sandbox changed, it will be killed and re-created."))
	}
	// What its cluster has as the end of it was told of before.
	if fin := d.Now.Finished; fin != nil && fin.Reason != "" && fin.Reason != plan.Terminated && !d.Pod.Over() {
		all = append(all, s.failed(fin))
	}
	return slices.Concat(all, d.waits(s), d.backoffs(s), d.stops())
}

// failed is the end of a pod that no container is to blame for.
func (s Subject) failed(fin *plan.Finished) Event {
	if fin.Reason == plan.DeadlineExceeded {
		return s.Normal(fin.Reason, "", fin.Message)
	}
	return s.Warning(fin.Reason, "", strings.TrimPrefix(fin.Message, plan.Rejected))
}

// waits is why a pod does not start, or its edit does not take over. Volumes,
// images and sandboxes that fail were told of by who tried.
func (d Decision) waits(s Subject) []Event {
	now := &d.Now
	if !now.Problem || now.Why == "" || now.Why == d.Before.Why {
		return nil
	}
	switch {
	case now.EditWaits:
		return []Event{s.Warning("FailedSync", "", now.Why)}
	case d.Missing != "" && strings.HasPrefix(now.Why, d.Missing):
		return []Event{d.missing(s)}
	case now.Phase != plan.PhaseWait || now.Reason == "":
		return nil
	case now.Reason == "NetworkNotReady":
		return []Event{s.Warning(now.Reason, "", "network is not ready: "+now.Why)}
	case now.Reason == "NameInUse":
		return []Event{s.Warning("FailedSync", "", now.Why)}
	}
	return []Event{s.Warning(now.Reason, "", now.Why)} // admission's
}

// missing is an object that is not there: what is lacking is a volume, a sandbox
// or, with variables, a container.
func (d Decision) missing(s Subject) Event {
	switch {
	case d.Volume != "":
		return s.VolumeFailed("MountVolume.SetUp", d.Volume, d.Now.Why)
	case d.Reason == "":
		return s.Warning("FailedCreatePodSandBox", "", "Failed to create pod sandbox: "+d.Now.Why)
	}
	return s.Warning("Failed", "", "Error: "+d.Now.Why)
}

// backoffs are the containers that are held back since they crashed: once a crash,
// which another end of the wait is the sign of.
func (d Decision) backoffs(s Subject) []Event {
	var all []Event
	for _, step := range d.Now.Steps {
		if step.Crashes == 0 || slices.ContainsFunc(d.Before.Steps, func(b plan.Step) bool {
			return b.Container == step.Container && b.Crashes > 0 && b.Until.Equal(step.Until)
		}) {
			continue
		}
		all = append(all, s.Warning("BackOff", step.Container, fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)",
			step.Container, s.Key.Name, s.Key.Namespace, s.UID)))
	}
	return all
}

// stops are the containers whose end begins.
func (d Decision) stops() []Event {
	if d.Now.Stopping == nil && d.Now.Finished == nil && len(d.Now.Endings) == 0 {
		return nil // most decisions end nothing
	}
	var all []Event
	for i := range d.Observed {
		inc := &d.Observed[i]
		whole := d.Now.Stopping != nil && d.Now.Stopping.SandboxID == inc.ID && inc.ID != "" ||
			d.Now.Finished != nil && plan.Runs(d.Pod, inc)
		for j := range inc.Containers {
			c := &inc.Containers[j]
			_, told := d.Endings[c.ID]
			own := !d.Now.Endings[c.ID].Since.IsZero()
			if c.State != runtime.Running || !own && (!whole || told) {
				continue
			}
			e := Subject{d.Key, inc.UID, d.Pod, d.At}.Normal("Killing", c.Name, d.killing(c, own))
			e.Field = fieldOf(c.Name, kindOf(c))
			all = append(all, e)
		}
	}
	return all
}

// killing is why a container is stopped: by a reason of its own, or with its pod.
func (d Decision) killing(c *runtime.Container, own bool) string {
	i := slices.IndexFunc(d.Now.Steps, func(s plan.Step) bool { return own && s.Container == c.Name })
	if i < 0 {
		return "Stopping container " + c.Name
	}
	switch step := d.Now.Steps[i]; {
	case step.Probe == plan.Startup, step.Probe == plan.Liveness:
		return fmt.Sprintf("Container %s failed %s probe%s", c.Name, step.Probe, d.restarts(c))
	case step.Reason == "PostStartHookError":
		return "FailedPostStartHook"
	}
	return "Stopping container " + c.Name
}

func (d Decision) restarts(c *runtime.Container) string {
	if d.Pod == nil {
		return ", will be restarted"
	}
	policy, spec := d.Pod.Spec.Spec.RestartPolicy, &d.Pod.Spec.Spec
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].Name == c.Name { // what it exits with is not known yet
				policy = manifest.RestartPolicyOf(spec, &list[i])
			}
		}
	}
	if policy == v1.RestartPolicyNever {
		return ""
	}
	return ", will be restarted"
}

// kindOf is what the container was made as: its manifest may be gone.
func kindOf(c *runtime.Container) plan.Kind {
	kind, _, _ := strings.Cut(c.Annotations[runtime.AnnotationKind], ":")
	return plan.Kind(kind)
}

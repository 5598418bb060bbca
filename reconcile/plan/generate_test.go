package plan

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"podd/manifest"
)

// genPods draws one to three versions of a pod, each with its own hash. Sometimes it adds a copy
// of a version in which containers have other sizes.
func genPods(t *rapid.T) []*manifest.Pod {
	var pods []*manifest.Pod
	for i := range rapid.IntRange(1, 3).Draw(t, "versions") {
		p := genPod(t, fmt.Sprintf("v1:%d", i))
		if pods = append(pods, p); p.Object.Spec.RestartPolicy == v1.RestartPolicyAlways && rapid.Bool().Draw(t, "two sizes") {
			pods = append(pods, genResized(t, p))
		}
	}
	return pods
}

// genResized returns a copy of p with random sizes of its containers.
func genResized(t *rapid.T, p *manifest.Pod) *manifest.Pod {
	sizes := map[string]string{}
	for name := range p.ContainerHashes {
		sizes[name] = rapid.SampledFrom([]string{"cpu=1/ memory=/1Gi", "cpu=2/ memory=/1Gi", "cpu=1/ memory=/2Gi"}).Draw(t, "size")
	}
	return p.WithSizes(sizes)
}

func genPod(t *rapid.T, hash string) *manifest.Pod {
	p := &manifest.Pod{
		Key: types.NamespacedName{Namespace: "default", Name: "web"}, UID: types.UID("made-" + hash[3:]), Hash: hash,
		Origin: manifest.Origin{Path: "web.yaml", Line: 1}, Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
	}
	if rapid.IntRange(0, 3).Draw(t, "fixed") == 0 {
		p.UID, p.HasFixedUID = "fixed", true
	}
	spec := &p.Object.Spec
	spec.RestartPolicy = rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}).Draw(t, "policy")
	rules := rapid.IntRange(0, 2).Draw(t, "rules") == 0
	spec.HostNetwork = rapid.Bool().Draw(t, "host")
	if g := rapid.SampledFrom([]int64{-1, 0, 1, 30}).Draw(t, "grace"); g >= 0 {
		spec.TerminationGracePeriodSeconds = &g
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "inits") {
		c := genContainer(t, fmt.Sprintf("i%d", i))
		if rapid.Bool().Draw(t, "sidecar") {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
			genProbes(t, &c)
			genHooks(t, &c)
		} else if rules {
			genRestart(t, &c, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
		c := genContainer(t, fmt.Sprintf("c%d", i))
		genProbes(t, &c)
		genHooks(t, &c)
		if rules {
			genRestart(t, &c, v1.ContainerRestartPolicyAlways, v1.ContainerRestartPolicyOnFailure, v1.ContainerRestartPolicyNever)
		}
		spec.Containers = append(spec.Containers, c)
	}
	p.ContainerHashes = map[string]manifest.ContainerHash{}
	for _, c := range containersOf(spec) {
		if spec.RestartPolicy != v1.RestartPolicyNever && rapid.IntRange(0, 3).Draw(t, "resize policy") == 0 {
			c.ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
		}
		c.Resources = v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")},
		}
		p.ContainerHashes[c.Name] = manifest.ContainerHash{Resources: manifest.FormatSize(c.Resources)}
	}
	return p
}

var imageNames = []string{"a:1", "b:1", "c:1"}

func genContainer(t *rapid.T, name string) v1.Container {
	return v1.Container{
		Name:            name,
		Image:           rapid.SampledFrom(imageNames).Draw(t, "image"),
		ImagePullPolicy: rapid.SampledFrom([]v1.PullPolicy{v1.PullAlways, v1.PullIfNotPresent}).Draw(t, "pull"),
	}
}

// genRestart sometimes gives a container its own restart policy and rules.
func genRestart(t *rapid.T, c *v1.Container, policies ...v1.ContainerRestartPolicy) {
	if rapid.Bool().Draw(t, "policy of the pod") {
		return
	}
	policy := rapid.SampledFrom(policies).Draw(t, "own policy")
	c.RestartPolicy = &policy
	for range rapid.IntRange(0, 2).Draw(t, "restart rules") {
		if rapid.IntRange(0, 3).Draw(t, "restart all") == 0 { // not after the exit code 0, because the pod would never run
			all := restart(v1.ContainerRestartRuleOnExitCodesOpIn, rapid.SampledFrom([]int32{1, 2, 137}).Draw(t, "code"))
			all.Action = v1.ContainerRestartRuleActionRestartAllContainers
			c.RestartPolicyRules = append(c.RestartPolicyRules, all)
			continue
		}
		c.RestartPolicyRules = append(c.RestartPolicyRules, v1.ContainerRestartRule{
			Action: v1.ContainerRestartRuleActionRestart,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{
				Operator: rapid.SampledFrom([]v1.ContainerRestartRuleOnExitCodesOperator{v1.ContainerRestartRuleOnExitCodesOpIn, v1.ContainerRestartRuleOnExitCodesOpNotIn}).Draw(t, "operator"),
				Values:   rapid.SliceOfN(rapid.SampledFrom([]int32{0, 1, 2, 137}), 0, 2).Draw(t, "codes"),
			},
		})
	}
}

// genProbes sometimes gives a container probes with their defaults.
func genProbes(t *rapid.T, c *v1.Container) {
	gen := func(kind ProbeKind) *v1.Probe {
		if rapid.IntRange(0, 2).Draw(t, string(kind)) > 0 {
			return nil
		}
		p := &v1.Probe{
			InitialDelaySeconds: rapid.SampledFrom([]int32{0, 0, 5, 90}).Draw(t, "delay"),
			PeriodSeconds:       rapid.SampledFrom([]int32{20, 30, 60}).Draw(t, "period"),
			TimeoutSeconds:      1, SuccessThreshold: 1, FailureThreshold: rapid.Int32Range(1, 3).Draw(t, "failures"),
		}
		if kind == ReadinessProbe {
			p.SuccessThreshold = rapid.Int32Range(1, 3).Draw(t, "successes")
		} else if rapid.Bool().Draw(t, "own grace") {
			grace := rapid.Int64Range(1, 60).Draw(t, "grace")
			p.TerminationGracePeriodSeconds = &grace
		}
		return p
	}
	c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = gen(StartupProbe), gen(LivenessProbe), gen(ReadinessProbe)
}

// genHooks sometimes gives a container hooks.
func genHooks(t *rapid.T, c *v1.Container) {
	gen := func(name string) *v1.LifecycleHandler {
		switch rapid.IntRange(0, 5).Draw(t, name) {
		case 0:
			return exec()
		case 1:
			return sleeps(rapid.SampledFrom([]int64{0, 1, 7, 30}).Draw(t, "sleep"))
		}
		return nil
	}
	if l := (v1.Lifecycle{PostStart: gen("postStart"), PreStop: gen("preStop")}); l.PostStart != nil || l.PreStop != nil {
		c.Lifecycle = &l
	}
}

// An op is an event in a world. The field kind is its name in happenings; n, m and d are its
// arguments.
type op struct {
	kind string
	n, m int
	d    time.Duration
}

func (o op) String() string { return fmt.Sprintf("%s(%d,%d,%s)", o.kind, o.n, o.m, o.d) }

func genOp(t *rapid.T, kinds []string) op {
	return op{
		kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
		n:    rapid.IntRange(0, 7).Draw(t, "n"), m: rapid.IntRange(0, 3).Draw(t, "m"),
		d: rapid.SampledFrom([]time.Duration{0, time.Second, 9 * time.Second, time.Minute, 11 * time.Minute}).Draw(t, "d"),
	}
}

const years = 10 * 365 * 24 * time.Hour

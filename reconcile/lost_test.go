package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podd/manifest"
	"podd/reconcile"
	"podd/reconcile/admission"
	"podd/runtime/runtimetest"
)

// TestLostSandbox checks the pods of a cluster whose sandboxes stopped while podd did not run, as in a
// reboot of the node. podd admits each of these pods again, as a kubelet does. The result must not
// depend on the order in which podd observes the runtime and the node, and a terminal phase must be
// final.
func TestLostSandbox(t *testing.T) {
	const noDevice, registers, absent = "not needed", "registers", "absent"
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
		for _, plugin := range []string{noDevice, registers, absent} {
			for _, isListed := range []bool{false, true} {
				for _, delayed := range []string{"", "Status", "ListContainers"} {
					t.Run(fmt.Sprintf("policy %s, plugin %s, sandbox listed %t, delayed %q", policy, plugin, isListed, delayed), func(t *testing.T) {
						runDevices(t, func(t *testing.T, m *machine, g *gpus, register func()) {
							published := statusLog{pod: "web"}
							openDevices := m.options
							m.options = func(o *reconcile.Options) { openDevices(o); useCluster(o); published.watch(o) }
							desired := func(status v1.PodStatus) *manifest.Pod {
								return clusterPod("web", func(p *v1.Pod) {
									p.Spec.RestartPolicy, p.Status = policy, status
									if plugin != noDevice {
										p.Spec.Containers[0].Resources.Limits = v1.ResourceList{gpu: resource.MustParse("1")}
										p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Limits
									}
								})
							}
							m.start()
							register()
							m.setClusterPods(true, desired(v1.PodStatus{Phase: v1.PodPending}))
							m.settle()
							m.wantState("web 0 ready", "web/app 0 running")
							m.kill()
							m.loseSandbox("web", isListed)
							published.all = nil
							m.setClusterPods(true, desired(m.report("web").Pod.Status))
							if delayed != "" {
								m.Inject(runtimetest.Fault{Method: delayed, Delay: 5 * time.Second})
							}
							m.ForgetCalls()
							m.start()
							m.advance(10 * time.Second)
							if plugin == registers {
								register()
							}
							m.advance(2 * time.Minute)

							want := "Running"
							switch {
							case plugin == absent:
								want = "Failed UnexpectedAdmissionError"
							case policy == v1.RestartPolicyNever:
								want = "Failed"
							}
							got := published.all
							if len(got) == 0 || got[len(got)-1] != want {
								t.Fatalf("statuses of the pod: got %q, want %q last\n%s", got, want, m.state())
							}
							if earlier := (&statusLog{all: got[:len(got)-1]}); earlier.hasEnded() {
								t.Errorf("statuses of the pod: got %q, want no change after a terminal phase", got)
							}
							starts := m.Calls("RunPodSandbox", "StartContainer")
							if want == "Running" && len(starts) != 2 || want != "Running" && len(starts) != 0 {
								t.Errorf("calls that start the pod, whose status is %s: got %v", want, starts)
							}
						})
					})
				}
			}
		}
	}
}

// loseSandbox stops the sandbox of a pod and its containers, as a reboot does. If isListed is false,
// the runtime does not list them afterwards.
func (m *machine) loseSandbox(name string, isListed bool) {
	m.t.Helper()
	for _, inc := range m.report(name).Observed {
		if isListed {
			m.KillSandbox(inc.ID)
		} else if err := m.RemovePodSandbox(m.t.Context(), inc.ID); err != nil {
			m.t.Fatal(err)
		}
	}
}

// TestLostSandbox_ResizePending checks a pod of a cluster whose new size is not admitted when podd is
// restarted. If its sandbox stops later, the pod must run again with its earlier size, because a kubelet
// admits a pod only once after its start.
func TestLostSandbox_ResizePending(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.options = func(o *reconcile.Options) {
			useCluster(o)
			o.Limits.Allocatable = admission.Amounts{v1.ResourceCPU: 1000}
		}
		sized := func(amount string) *manifest.Pod {
			return clusterPod("web", func(p *v1.Pod) {
				p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(amount)}
			})
		}
		m.start()
		m.setClusterPods(true, sized("100m"))
		m.settle()
		m.setClusterPods(true, sized("2"))
		m.settle()
		m.restart()
		m.loseSandbox("web", true)
		m.advance(time.Minute)
		m.wantState("web 1 ready", "web/app 1 running")
		s := m.report("web").Pod.Status
		if got := s.ContainerStatuses[0].AllocatedResources.Cpu().String(); s.Phase != v1.PodRunning || got != "100m" {
			t.Errorf("pod: got phase %s and allocated CPU %s, want Running and 100m\n%s", s.Phase, got, m.state())
		}
	})
}

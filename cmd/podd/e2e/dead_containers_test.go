//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/cmd/podd/e2e/harness"
	"podd/server"
)

// exitedAttempts returns the sorted attempt numbers of the exited containers of a pod in the
// runtime.
func (d *daemon) exitedAttempts(pod string) (attempts []int, err error) {
	now, err := d.inventory(d.t.Context())
	if err != nil {
		return nil, err
	}
	for _, c := range now.containers {
		if c.GetState() == cri.ContainerState_CONTAINER_EXITED && strings.HasPrefix(c.GetLabels()["io.kubernetes.pod.name"], pod) {
			attempts = append(attempts, int(c.GetMetadata().GetAttempt()))
		}
	}
	slices.Sort(attempts)
	return attempts, nil
}

// untilExitedAttempts waits until the exited containers of a pod in the runtime have exactly the
// attempt numbers in want.
func (d *daemon) untilExitedAttempts(pod string, want ...int) {
	d.t.Helper()
	d.eventually(fmt.Sprintf("the exited containers of pod %s are attempts %v", pod, want), func() error {
		got, err := d.exitedAttempts(pod)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("got attempts %v, want %v", got, want)
		}
		return err
	})
}

// restartTo restarts a pod with podd restart until the restart count of its container is count.
func (d *daemon) restartTo(pod string, count int) {
	d.t.Helper()
	for n := range count {
		d.verb("restart", pod)
		d.untilPod("has restarted", pod, func(p *server.PodView) error {
			if got := restarts(p, "main"); got != n+1 || !p.Pod.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("got %d restarts (status %+v), want %d restarts", got, p.Pod.Status.ContainerStatuses[0], n+1)
			}
			return nil
		})
	}
}

// TestDeadContainers_PerContainer checks that, with --maximum-dead-containers-per-container=3, podd
// keeps the containers and logs of the last three exited attempts.
func TestDeadContainers_PerContainer(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--maximum-dead-containers-per-container=3")
	main := shell("main", "trap 'exit 0' TERM; echo started; touch /ready; sleep 1000 & wait")
	// Without the probe, restartTo could stop a container before its shell runs, and its log would be
	// empty.
	main.ReadinessProbe = probeEverySecond(execHandler("test -e /ready"))
	d.apply(d.pod("web", main))
	d.untilPod("runs", "web", inPhase(v1.PodRunning))
	d.restartTo("web", 5)
	d.untilExitedAttempts("web", 2, 3, 4)
	logs, err := filepath.Glob(filepath.Join(d.logDir(), "*", "main", "*.log"))
	for i, path := range logs {
		logs[i] = filepath.Base(path)
	}
	// The log of attempt 1 may exist: it does if the container of attempt 1 still existed when attempt 5
	// was started.
	logs = slices.DeleteFunc(logs, func(name string) bool { return name == "1.log" })
	if want := []string{"2.log", "3.log", "4.log", "5.log"}; err != nil || !slices.Equal(logs, want) {
		t.Errorf("got logs %v and error %v, want %v", logs, err, want)
	}
	if out, _ := d.verb("logs", "web", "--previous"); !strings.Contains(out, "started") {
		t.Errorf("podd logs --previous: got %q, want %q in it", out, "started")
	}
}

// TestDeadContainers_MinimumAge checks that podd keeps exited containers that are younger than
// --minimum-container-ttl-duration, and then removes all but the last one.
func TestDeadContainers_MinimumAge(t *testing.T) {
	t.Parallel()
	age := 30 * time.Second
	d := startDaemon(t, "--minimum-container-ttl-duration="+age.String())
	d.apply(d.pod("web", shell("main", "exec sleep 1000")))
	d.untilPod("runs", "web", inPhase(v1.PodRunning))
	began := time.Now()
	d.restartTo("web", 3)
	if got, err := d.exitedAttempts("web"); time.Since(began) < age && (err != nil || !slices.Equal(got, []int{0, 1, 2})) {
		t.Errorf("exited attempts after %s: got %v, error %v, want 0, 1 and 2", time.Since(began), got, err)
	}
	d.untilExitedAttempts("web", 2)
	if after := time.Since(began); after < age-time.Second {
		t.Errorf("removal of the exited containers: got removal after %s, want removal after at least %s", after, age)
	}
}

// TestDeadContainers_Total checks that, with --maximum-dead-containers=2, podd removes the oldest
// containers of finished pods. These pods must keep their status and logs and must not run again. podd
// must keep the exited container of a running pod.
func TestDeadContainers_Total(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, "--maximum-dead-containers=2")
	d.apply(d.pod("web", shell("main", "exec sleep 1000")))
	d.untilPod("runs", "web", inPhase(v1.PodRunning))
	d.restartTo("web", 1)
	const jobs = 3
	for i := range jobs {
		name := "job" + strconv.Itoa(i)
		job := d.pod(name, shell("main", note(name)+"echo done"))
		job.Spec.RestartPolicy = v1.RestartPolicyNever
		d.apply(job)
		d.untilPod("has completed", name, inPhase(v1.PodSucceeded))
	}
	err := harness.Poll(2*time.Minute, func() error {
		got, err := d.exitedAttempts("job")
		if err == nil && len(got) != 1 {
			err = fmt.Errorf("got %d exited containers of jobs, want 1", len(got))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.untilExitedAttempts("web", 0)
	d.crash()
	for i := range jobs {
		name := "job" + strconv.Itoa(i)
		d.untilPod("is still completed", name, inPhase(v1.PodSucceeded))
		if out, _ := d.verb("logs", name); !strings.Contains(out, "done") {
			t.Errorf("podd logs %s: got %q, want %q in it", name, out, "done")
		}
	}
	d.untilNoted("job0", "job1", "job2")
}

package reconcile_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/logs"
	"podd/runtime/runtimetest"
)

const secret = "s3cret"

func debugger(name, image, target string) v1.EphemeralContainer {
	return v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		Name: name, Image: image, ImagePullPolicy: v1.PullIfNotPresent, Env: []v1.EnvVar{{Name: "TOKEN", Value: secret}},
	}, TargetContainerName: target}
}

// debug adds ephemeral containers to a pod, as a debug request does.
func (m *machine) debug(name string, add ...v1.EphemeralContainer) error {
	m.t.Helper()
	p := m.report(name).Pod
	version := m.report(name).Version
	dir := logs.Dir(filepath.Join(m.root, "logs"), version.Key, version.UID)
	for _, c := range add { // creates the log directories, as a runtime does
		if err := os.MkdirAll(filepath.Join(dir, c.Name), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	return m.current().router.SetEphemeralContainers(context.Background(), key(name), p.UID, append(append([]v1.EphemeralContainer{}, p.Spec.EphemeralContainers...), add...), false)
}

// ephemerals returns the published ephemeral containers of a pod, each with its state.
func (m *machine) ephemerals(name string) string {
	p := m.report(name).Pod
	var all []string
	for _, c := range p.Spec.EphemeralContainers {
		text := c.Name
		for _, s := range p.Status.EphemeralContainerStatuses {
			switch {
			case s.Name != c.Name:
			case s.State.Running != nil:
				text += " runs"
			case s.State.Terminated != nil:
				text += " " + s.State.Terminated.Reason
			default:
				text += " " + s.State.Waiting.Reason
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (m *machine) wantEphemeral(name, want string) {
	m.t.Helper()
	if got := m.ephemerals(name); got != want {
		m.t.Fatalf("published ephemeral containers of pod %s: got %q, want %q\n%s%+v", name, got, want, m.state(), m.report(name).Pod.Status.EphemeralContainerStatuses)
	}
}

// onlyJournal returns the journal of the only pod.
func (m *machine) onlyJournal() string {
	text, err := os.ReadFile(filepath.Join(m.root, "pods", m.dirs()[0], "journal.json"))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

// TestEphemeral checks that an ephemeral container is added and runs with the other containers,
// even after a restart of podd. After its exit it is never started again, and it is removed with
// its pod.
func TestEphemeral(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		p := pod(t, "web", web)
		m.setPods(p)
		m.settle()
		m.ForgetCalls()
		if err := m.debug("web", debugger("debug", "side:1", "app")); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantCalls("CreateContainer web/debug", "StartContainer web/debug")
		m.wantState("web 0 ready", "web/app 0 running", "web/debug 0 running")
		m.wantEphemeral("web", "debug runs")
		config := m.Calls("CreateContainer")[0].Request.(*cri.CreateContainerRequest).GetConfig()
		if o := config.GetLinux().GetSecurityContext().GetNamespaceOptions(); o.GetPid() != cri.NamespaceMode_TARGET || o.GetTargetId() == "" {
			t.Errorf("namespaces of the ephemeral container: got %v, want PID mode TARGET with a target", o)
		}
		if strings.Contains(m.onlyJournal(), secret) {
			t.Errorf("journal after the container was created: got the container's variables, want none: %s", m.onlyJournal())
		}

		m.ForgetCalls()
		m.restart()
		m.wantCalls()
		m.wantEphemeral("web", "debug runs")
		if got := m.report("web").Pod.Spec.EphemeralContainers[0]; got.TargetContainerName != "app" || got.Env[0].Value != secret {
			t.Errorf("ephemeral container after a restart of podd: got %+v, want target app and its variable", got)
		}

		m.ExitContainer("default/web/debug", 1)
		m.settle()
		m.wantEphemeral("web", "debug Error")
		m.restart()
		m.advance(time.Hour)
		m.wantCalls()
		m.wantEphemeral("web", "debug Error")

		m.setPods()
		m.settle()
		m.wantState()
		if dirs := m.dirs(); len(dirs) > 0 {
			t.Errorf("pod directories after the removal: got %v, want none", dirs)
		}
	})
}

// TestEphemeralPending checks an ephemeral container that podd accepted and did not create yet. It is
// stored only in the journal, and after a restart podd creates it exactly once.
func TestEphemeralPending(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web))
		m.settle()
		if err := m.debug("web", debugger("debug", "late:1", "")); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantEphemeral("web", "debug ImagePullBackOff")
		var j struct{ Ephemeral []v1.EphemeralContainer }
		if err := json.Unmarshal([]byte(m.onlyJournal()), &j); err != nil || len(j.Ephemeral) != 1 {
			t.Fatalf("journal: got %s (error %v), want one ephemeral container", m.onlyJournal(), err)
		}
		if strings.Contains(m.state(), secret) {
			t.Errorf("state: got the value of a Secret, want none: %s", m.state())
		}
		m.restart()
		m.AddImages("late:1")
		m.advance(10 * time.Minute)
		m.wantEphemeral("web", "debug runs")
		if strings.Contains(m.onlyJournal(), secret) {
			t.Errorf("journal after the container was created: got the container's variables, want none: %s", m.onlyJournal())
		}
		if n := len(m.Calls("CreateContainer")); n != 2 {
			t.Errorf("created containers: got %d, want 2", n)
		}
	})
}

// TestEphemeral_LostResponse checks that podd observes whether the container was created
// before it creates it again.
func TestEphemeral_LostResponse(t *testing.T) {
	for _, method := range []string{"CreateContainer", "StartContainer"} {
		run(t, func(t *testing.T, m *machine) {
			m.start()
			m.setPods(pod(t, "web", web))
			m.settle()
			m.Inject(runtimetest.Fault{Method: method, Nth: 1, AfterEffect: true})
			if err := m.debug("web", debugger("debug", "side:1", "")); err != nil {
				t.Fatal(err)
			}
			m.advance(time.Minute)
			m.wantState("web 0 ready", "web/app 0 running", "web/debug 0 running")
			m.wantEphemeral("web", "debug runs")
		})
	}
}

// TestEphemeralEdit checks that ephemeral containers remain after an edit that does not stop the pod.
// After an edit that replaces the sandbox they are removed, because a new sandbox has none.
func TestEphemeralEdit(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web), pod(t, "other", web))
		m.settle()
		if err := m.debug("web", debugger("debug", "side:1", "")); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.ForgetCalls()
		m.setPods(pod(t, "web", web), pod(t, "other", "terminationGracePeriodSeconds: 5\n"+web)) // decoded again
		m.settle()
		m.wantEphemeral("web", "debug runs")
		if n := len(m.report("web").Pod.Spec.EphemeralContainers); n != 1 {
			t.Errorf("ephemeral containers in the published pod: got %d, want 1", n)
		}
		m.KillSandbox(m.report("web").Observed[0].ID)
		m.settle()
		m.wantEphemeral("web", "debug Error")
		m.wantState("web 1 ready", "web/app 1 running", "other 0 ready", "other/app 0 running")

		m.setPods(pod(t, "web", "terminationGracePeriodSeconds: 5\n"+web))
		m.settle()
		m.wantEphemeral("web", "")
	})
}

func TestEphemeralRefused(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		m.setPods(pod(t, "web", web), pod(t, "job", `restartPolicy: Never
containers: [{name: app, image: "job:1", command: [sh, -c, "exit 0"]}]`))
		m.settle()
		router, ctx := m.current().router, context.Background()
		list := []v1.EphemeralContainer{debugger("debug", "side:1", "")}
		uid := m.report("web").Pod.UID
		if err := router.SetEphemeralContainers(ctx, key("no"), uid, list, false); !apierrors.IsNotFound(err) {
			t.Errorf("Debug of a missing pod: got error %v, want NotFound", err)
		}
		if err := router.SetEphemeralContainers(ctx, key("web"), "other", list, false); !apierrors.IsConflict(err) {
			t.Errorf("Debug of another UID: got error %v, want Conflict", err)
		}
		if err := router.SetEphemeralContainers(ctx, key("job"), m.report("job").Pod.UID, list, false); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "has finished") {
			t.Errorf("Debug of a finished pod: got error %v, want Invalid with %q", err, "has finished")
		}
		if err := m.debug("web", debugger("app", "side:1", "")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ephemeralContainers[0].name") {
			t.Errorf("Debug with a name in use: got error %v, want Invalid that names the field", err)
		}
		confined := debugger("debug", "side:1", "")
		confined.SecurityContext = &v1.SecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}}
		if err := m.debug("web", confined); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "AppArmor is disabled") {
			t.Errorf("Debug with an AppArmor profile: got error %v, want Invalid with %q", err, "AppArmor is disabled")
		}
		if err := router.SetEphemeralContainers(ctx, key("web"), uid, list, true); err != nil {
			t.Errorf("dry run of Debug: got error %v, want none", err)
		}
		m.settle()
		m.wantEphemeral("web", "")
		if err := m.debug("web", list...); err != nil {
			t.Fatal(err)
		}
		m.settle()
		if err := router.SetEphemeralContainers(ctx, key("web"), uid, nil, false); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be removed") {
			t.Errorf("Debug without containers: got error %v, want Invalid with %q", err, "cannot be removed")
		}
		if err := router.Restart(ctx, key("web"), "debug"); err == nil || !strings.Contains(err.Error(), "runs once") {
			t.Errorf("Restart of an ephemeral container: got error %v, want one with %q", err, "runs once")
		}
		m.ForgetCalls()
		if err := router.Restart(ctx, key("web"), ""); err != nil {
			t.Error(err)
		}
		m.settle()
		m.wantCalls("StopContainer web/app", "CreateContainer web/app", "StartContainer web/app")
	})
}

// TestEphemeralObjects checks that an ephemeral container gets the ConfigMap that it refers to. While
// the ConfigMap is missing, no other container waits for it.
func TestEphemeralObjects(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		m.start()
		p := pod(t, "web", web)
		m.setPods(p)
		m.settle()
		c := debugger("debug", "side:1", "")
		c.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "conf"}}}}
		if err := m.debug("web", c); err != nil {
			t.Fatal(err)
		}
		m.settle()
		m.wantEphemeral("web", "debug CreateContainerConfigError")
		m.setObjects("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {MODE: slow}\n", p)
		m.settle()
		m.wantEphemeral("web", "debug runs")
		calls := m.Calls("CreateContainer")
		envs := calls[len(calls)-1].Request.(*cri.CreateContainerRequest).GetConfig().GetEnvs()
		found := false
		for _, e := range envs {
			found = found || e.GetKey() == "MODE" && string(e.GetValue()) == "slow"
		}
		if !found {
			t.Errorf("variables of the container: got %v, want the one of the ConfigMap", envs)
		}
	})
}

package reconcile_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podd/reconcile"
)

// TestHoldInstance is not a test. As a separate process it holds the root directory
// $PODD_TEST_ROOT, with $PODD_TEST_ADOPT adopted, until its input ends.
func TestHoldInstance(t *testing.T) {
	root := os.Getenv("PODD_TEST_ROOT")
	if root == "" {
		return
	}
	i, err := reconcile.LockRoot(root)
	if err == nil {
		defer i.Close() // also keeps the garbage collector from closing the lock file
		err = i.Adopt(strings.Fields(os.Getenv("PODD_TEST_ADOPT"))...)
	}
	fmt.Println("owned", err)
	bufio.NewReader(os.Stdin).ReadString('\n')
}

// holdInstance runs another process that locks a root directory, until end is called.
func holdInstance(t *testing.T, root string, adopt ...string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHoldInstance$")
	cmd.Env = append(os.Environ(), "PODD_TEST_ROOT="+root, "PODD_TEST_ADOPT="+strings.Join(adopt, " "))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "owned <nil>\n" {
		t.Fatalf("first line of the other process: got %q (error %v), want %q", line, err, "owned <nil>\n")
	}
	end = func() { in.Close(); cmd.Wait() }
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// TestAdoptInstance checks that an instance can be adopted only while no podd runs it, even if its
// root directory was moved. The next podd has still adopted the instance.
func TestAdoptInstance(t *testing.T) {
	dir := t.TempDir()
	theirs, moved, ours := filepath.Join(dir, "theirs"), filepath.Join(dir, "moved"), filepath.Join(dir, "ours")
	pid, end := holdInstance(t, theirs)
	id, _, err := reconcile.ReadInstanceIDs(theirs)
	if err != nil || id == "" {
		t.Fatalf("ID of the other instance: got %q (error %v), want one", id, err)
	}
	i, err := reconcile.LockRoot(ours)
	if err != nil {
		t.Fatal(err)
	}
	running := fmt.Sprintf("the podd with PID %d runs it", pid)
	if err := i.Adopt(id); err == nil || !strings.Contains(err.Error(), running) {
		t.Errorf("Adopt of a running instance: got error %v, want %q", err, running)
	}
	if err := os.Rename(theirs, moved); err != nil {
		t.Fatal(err)
	}
	if err := i.Adopt(id); err == nil || !strings.Contains(err.Error(), running) {
		t.Errorf("Adopt of a running instance with a moved directory: got error %v, want %q", err, running)
	}
	if err := os.RemoveAll(moved); err != nil {
		t.Fatal(err)
	}
	if err := i.Adopt(id); err == nil || !strings.Contains(err.Error(), running) {
		t.Errorf("Adopt of a running instance with a removed directory: got error %v, want %q", err, running)
	}
	if len(i.AdoptedIDs) > 0 {
		t.Errorf("adopted instances: got %q, want none", i.AdoptedIDs)
	}
	end()
	for _, bad := range []string{"", "x", "../../etc/passwd", strings.ToUpper(id)} {
		if err := i.Adopt(bad); err == nil && bad != id {
			t.Errorf("Adopt(%q): got no error, want one", bad)
		}
	}
	if err := i.Adopt(id, i.ID); err != nil || !slices.Equal(i.IDs(), []string{i.ID, id}) {
		t.Errorf("IDs after Adopt: got %q (error %v), want %s and %s", i.IDs(), err, i.ID, id)
	}
	i.Close()
	if i, err = reconcile.LockRoot(ours); err != nil || !slices.Equal(i.AdoptedIDs, []string{id}) {
		t.Fatalf("instance of the next podd: got %+v (error %v), want adopted %s", i, err, id)
	}
	i.Close()
	if _, adopted, err := reconcile.ReadInstanceIDs(ours); err != nil || !slices.Equal(adopted, []string{id}) {
		t.Errorf("ReadInstanceIDs: got adopted %q (error %v), want %s", adopted, err, id)
	}
}

// TestAdoptInstance_NotAnnounced checks that an instance is not adopted if its podd runs
// and wrote no IDs into its lock file.
func TestAdoptInstance_NotAnnounced(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	pid, end := holdInstance(t, theirs)
	defer end()
	id, _, err := reconcile.ReadInstanceIDs(theirs)
	if err != nil || id == "" {
		t.Fatalf("ID of the other instance: got %q (error %v), want one", id, err)
	}
	if err := os.Truncate(filepath.Join(theirs, "lock"), 0); err != nil {
		t.Fatal(err)
	}
	i, err := reconcile.LockRoot(filepath.Join(dir, "ours"))
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if err := i.Adopt(id); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the podd with PID %d runs it", pid)) {
		t.Errorf("Adopt: got error %v, want one that names PID %d", err, pid)
	}
}

// TestAdoptedInstanceReturns checks that an instance and the instance that adopted it never manage
// the pods at the same time.
func TestAdoptedInstanceReturns(t *testing.T) {
	dir := t.TempDir()
	theirs, ours := filepath.Join(dir, "theirs"), filepath.Join(dir, "ours")
	i, err := reconcile.LockRoot(theirs)
	if err != nil {
		t.Fatal(err)
	}
	id := i.ID
	i.Close()
	pid, end := holdInstance(t, ours, id)
	if i, err := reconcile.LockRoot(theirs); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("PID %d", pid)) {
		t.Errorf("LockRoot while another podd has adopted the instance: got %+v (error %v), want an error with the PID of that podd", i, err)
	}
	end()
	_, end = holdInstance(t, theirs)
	i, err = reconcile.LockRoot(ours)
	if err != nil || len(i.AdoptedIDs) > 0 || !slices.Equal(i.ContestedIDs, []string{id}) {
		t.Fatalf("LockRoot while a podd runs the adopted instance: got %+v (error %v), want ContestedIDs %s and no AdoptedIDs", i, err, id)
	}
	if err := i.Adopt(id); err != nil || len(i.AdoptedIDs) > 0 {
		t.Errorf("Adopt of a contested instance: got AdoptedIDs %q (error %v), want none and no error", i.AdoptedIDs, err)
	}
	i.Close()
	end()
	if i, err = reconcile.LockRoot(ours); err != nil || !slices.Equal(i.AdoptedIDs, []string{id}) {
		t.Errorf("LockRoot after the podd of the adopted instance exited: got %+v (error %v), want AdoptedIDs %s", i, err, id)
	}
	i.Close()
}

// TestLostRoot checks running pods of an instance whose root directory is lost. Desired pods with the
// same names wait until the instance is adopted. Then a desired pod continues to run without any call
// that starts something, and a pod that is not desired stops with its grace period.
func TestLostRoot(t *testing.T) {
	run(t, func(t *testing.T, m *machine) {
		web := pod(t, "web", `volumes: [{name: v, emptyDir: {}}]
containers: [{name: app, image: "web:1", volumeMounts: [{name: v, mountPath: /v}]}]`)
		old := pod(t, "old", "terminationGracePeriodSeconds: 7\n"+`containers: [{name: app, image: "job:1", command: [sleep, inf]}]`)
		m.start()
		m.setPods(web, old)
		m.settle()
		m.kill()
		if err := os.RemoveAll(filepath.Join(m.root, "pods")); err != nil {
			t.Fatal(err)
		}
		m.instance = "fedcba9876543210"
		m.options = func(o *reconcile.Options) { o.RunningInstances = func() (map[string]int, error) { return nil, nil } }
		var log bytes.Buffer
		m.log = slog.NewTextHandler(&log, nil)
		m.setPods(web)
		m.ForgetCalls()
		m.start()
		m.settle()
		m.wantCalls()
		if why := m.report("web").Decision.Why; !strings.Contains(why, "--adopt-instance="+instance) {
			t.Errorf("reason why the pod waits: got %q, want the flag --adopt-instance=%s", why, instance)
		}
		if want := "pods=\"default/old, default/web\""; !strings.Contains(log.String(), "--adopt-instance="+instance) || !strings.Contains(log.String(), want) {
			t.Errorf("got log\n%s, want a record with instance %s and %s", log.String(), instance, want)
		}
		m.kill()
		m.adopted = []string{instance}
		m.ForgetCalls()
		began := time.Now()
		m.start()
		m.settle()
		m.wantState("web 0 ready", "web/app 0 running")
		for _, call := range m.Calls("StopPodSandbox") {
			if took := call.At.Sub(began); took < 7*time.Second || took > 8*time.Second {
				t.Errorf("time until the container stopped: got %s, want 7s", took)
			}
		}
		if n := len(m.Calls("StopPodSandbox")); n == 0 {
			t.Error("stops of the pod that is not desired: got none, want at least one")
		}
		if n := len(m.Calls("StartContainer")) + len(m.Calls("RunPodSandbox")); n > 0 {
			t.Errorf("calls that started something: got %d, want none", n)
		}
		// From now on the pod is handled like any other pod.
		m.setPods()
		m.settle()
		m.wantState()
		if len(m.dirs()) > 0 {
			t.Errorf("pod directories: got %q, want none", m.dirs())
		}
	})
}

// TestInstance_CheckRoot checks that CheckRoot returns an error if the locked directory was moved, and
// if another directory has its path. That directory may be empty or of another instance.
func TestInstance_CheckRoot(t *testing.T) {
	dir := t.TempDir()
	root, used, moved := filepath.Join(dir, "root"), filepath.Join(dir, "used"), filepath.Join(dir, "moved")
	other, err := reconcile.LockRoot(used)
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	i, err := reconcile.LockRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	check := func(what string, replaced bool) {
		t.Helper()
		err := i.CheckRoot()
		if replaced != (err != nil) {
			t.Errorf("%s: got error %v, want an error: %t", what, err, replaced)
		}
		if err != nil && (!strings.Contains(err.Error(), root) || !strings.Contains(err.Error(), "restart podd")) {
			t.Errorf("%s: got error %q, want the directory and the remedy", what, err)
		}
	}
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	check("at the start", false)
	rename(root, moved)
	check("moved", true)
	if err := os.Mkdir(root, 0o750); err != nil {
		t.Fatal(err)
	}
	check("an empty directory", true)
	if err := os.Remove(root); err != nil {
		t.Fatal(err)
	}
	rename(used, root)
	check("the directory of another instance", true)
	rename(root, used)
	rename(moved, root)
	check("moved back", false)
}

//go:build e2e

package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime/atomicfile"
)

// stateDir is the root directory of podd.
const stateDir = "/var/lib/podd"

// mountState mounts the file system under test on podd's root directory. The step of make vm that runs
// the test selects the file system. podd must not be running. The root file system is not suitable: it
// contains the overlay file systems of containers, and is synced when one of them is unmounted.
func mountState(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(stateDir, 0o700); err != nil { // it may not exist yet
		t.Fatal(err)
	}
	run(t, "mount -o "+cmp.Or(os.Getenv("PODD_STATE_OPTIONS"), "defaults")+" "+os.Getenv("PODD_STATE_DEVICE")+" "+stateDir)
}

// control is a file that is replaced like a journal, but not synced. If the file survives the power cut,
// a journal that podd has not synced would also survive, and the test would prove nothing.
const control = "control"

// writeControl replaces the control file. It syncs the file if durable is true.
func writeControl(t *testing.T, text string, durable bool) {
	t.Helper()
	root, err := os.OpenRoot(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := atomicfile.SwapIn(root, control, control+".new", []byte(text), durable); err != nil {
		t.Fatal(err)
	}
}

// stopWriteback prevents, until the next boot, that the kernel writes dirty pages because of their age.
// Data that no process has synced then stays in memory during a test. The interval of writeback is set
// to a day. With an interval of 0, the flusher of a file system would run as soon as a file is dirty.
// The flusher would write the file, because the background threshold of a device to which little was
// written is very low.
func stopWriteback(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"dirty_writeback_centisecs": "8640000", "dirty_expire_centisecs": "8640000"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/vm", name), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// jobs returns the manifests of two pods that run once. The container of the last pod writes and
// syncs nothing.
func jobs() map[string]string {
	once := "  restartPolicy: Never\n"
	silent := "  - {name: last, image: podd.test/busybox:1, command: [sh, -c, 'exit 0']}\n"
	return map[string]string{"first": pod("first", once, container("first", "exit 0", "")), "last": pod("last", once, silent)}
}

// untilWoundDown waits until the pod of a job has succeeded and podd has released the volumes of the
// pod. podd then reports the phase "rest".
func untilWoundDown(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" is wound down", func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if p := pods[name]; p == nil || !p.Ready || p.Phase != "rest" {
			return fmt.Errorf("pod %s: got %+v, want a succeeded pod in the phase \"rest\"", name, p)
		}
		return nil
	})
}

// TestFinish runs two jobs one after the other, just before the power is cut. podd writes the journal of
// the first job, and replaces this journal when it releases the volumes of the job. Then podd syncs the
// journal of the last job. With this sync the file system also commits all renames so far, even if the
// data of a renamed file is not on disk. If podd did not sync the journal of the first job, this journal
// would be empty after the power cut.
func TestFinish(t *testing.T) {
	run(t, "systemctl disable podd") // podd must not start at the next boot, because TestAfterFinish starts it
	run(t, "systemctl stop podd")
	mountState(t)
	stopWriteback(t)
	writeControl(t, "synced", true)
	run(t, "systemctl start podd")
	all := jobs()
	apply(t, map[string]string{"first": all["first"]})
	untilWoundDown(t, "first")
	writeControl(t, "not synced", false)
	apply(t, map[string]string{"last": all["last"]})
	untilWoundDown(t, "last")
}

// TestAfterFinish checks that podd does not run the first job again, although the runtime does not list
// the pod of this job any more. The control file was not synced and must have lost its content.
// Otherwise the test would also pass if podd did not sync its journals.
func TestAfterFinish(t *testing.T) {
	mountState(t)
	if text, err := os.ReadFile(filepath.Join(stateDir, control)); err != nil || len(text) > 0 {
		t.Errorf("control file: got %q, error %v; want an empty file, because otherwise a journal that podd has not synced would also have survived", text, err)
	}
	eventually(t, "containerd is ready", func() error {
		_, err := getInventory(t.Context())
		return err
	})
	if err := removeAllPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl enable podd")
	run(t, "systemctl start podd")
	untilWoundDown(t, "first")
	if n, _ := starts(t, "first"); n != 1 {
		t.Errorf("first job: got %d runs, want 1", n)
	}
	now, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range now.exited {
		if name == "first" || name == "first/first" {
			t.Errorf("after podd's start: got %s in the runtime, want podd not to create it again", name)
		}
	}
	remove(t, "first", "last")
	untilClean(t)
	if err := os.Remove(filepath.Join(notes, "first")); err != nil {
		t.Error(err)
	}
	run(t, "systemctl stop podd")
	run(t, "umount "+stateDir)
	run(t, "systemctl start podd")
}

// removeAllPods removes every pod from the runtime. It returns an error if there is no pod.
func removeAllPods(ctx context.Context) error {
	conn, err := grpc.NewClient("unix:///run/containerd/containerd.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := cri.NewRuntimeServiceClient(conn)
	list, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	if len(list.GetItems()) == 0 {
		return errors.New("got no pod in the runtime, want some")
	}
	for _, s := range list.GetItems() {
		_, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: s.GetId()})
		if err == nil {
			_, err = client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

//go:build vm

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

// mountState mounts the file system under test, which the step names, on the root
// directory of podd. podd must not run. That of the machine is no such file system: the
// overlay file systems of containers are on it, and it is synced when one is unmounted.
func mountState(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(stateDir, 0o700); err != nil { // podd may never have run here
		t.Fatal(err)
	}
	run(t, "mount -o "+cmp.Or(os.Getenv("PODD_STATE_OPTIONS"), "defaults")+" "+os.Getenv("PODD_STATE_DEVICE")+" "+stateDir)
}

// control is a file that is replaced like a journal, but not synced. If it survives the
// power cut, so would a journal that podd failed to sync.
const control = "control"

// writeControl replaces the control with a write function.
func writeControl(t *testing.T, write func(root *os.Root, name, temp string, data []byte) error, text string) {
	t.Helper()
	root, err := os.OpenRoot(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := write(root, control, control+".new", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// stopWriteback stops the kernel from writing dirty pages by their age, until the next
// boot: data that no program has synced stays in memory, however long a test takes. The
// interval is a day. With 0 the flusher of a file system wakes as soon as a file is dirty,
// and because hardly anything was written to that device, the background threshold is so
// low that it writes the file.
func stopWriteback(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"dirty_writeback_centisecs": "8640000", "dirty_expire_centisecs": "8640000"} {
		if err := os.WriteFile(filepath.Join("/proc/sys/vm", name), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// jobs returns two pods that run once. The last one writes and syncs nothing itself.
func jobs() map[string]string {
	once := "  restartPolicy: Never\n"
	silent := "  - {name: last, image: podd.test/busybox:1, command: [sh, -c, 'exit 0']}\n"
	return map[string]string{"first": pod("first", once, container("first", "exit 0", "")), "last": pod("last", once, silent)}
}

// untilRests waits until a job has succeeded and released its volumes.
func untilRests(t *testing.T, name string) {
	t.Helper()
	eventually(t, name+" rests", func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if p := pods[name]; p == nil || !p.Ready || p.Phase != "rest" {
			return fmt.Errorf("%s: %+v", name, p)
		}
		return nil
	})
}

// TestFinish runs two jobs to their end, one after the other, just before the power is
// cut. podd has written the journal of the first again after its end, as when it released
// the volumes. Its sync for the end of the last commits the file system's journal, and
// with it the new name of a file whose data may not be on disk.
func TestFinish(t *testing.T) {
	run(t, "systemctl disable podd") // TestAfterFinish starts it
	run(t, "systemctl stop podd")
	mountState(t)
	stopWriteback(t)
	writeControl(t, atomicfile.WriteIn, "synced")
	run(t, "systemctl start podd")
	all := jobs()
	apply(t, map[string]string{"first": all["first"]})
	untilRests(t, "first")
	writeControl(t, atomicfile.Replace, "not synced")
	apply(t, map[string]string{"last": all["last"]})
	untilRests(t, "last")
}

// TestAfterFinish: podd does not run the first job again, although the runtime has no
// record of it. What nothing has synced is lost.
func TestAfterFinish(t *testing.T) {
	mountState(t)
	if text, err := os.ReadFile(filepath.Join(stateDir, control)); err != nil || len(text) > 0 {
		t.Errorf("the control is %q, %v, want an empty file: a journal that is not synced is not lost either", text, err)
	}
	eventually(t, "containerd is ready", func() error {
		_, err := look(t.Context())
		return err
	})
	if err := forgetPods(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl enable podd")
	run(t, "systemctl start podd")
	untilRests(t, "first")
	if n, _ := starts(t, "first"); n != 1 {
		t.Errorf("the first job has run %d times", n)
	}
	now, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range now.dead {
		if name == "first" || name == "first/first" {
			t.Errorf("the runtime has a %s again", name)
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

// forgetPods removes every pod from the runtime. None at all is an error.
func forgetPods(ctx context.Context) error {
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
		return errors.New("the runtime has no pod")
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

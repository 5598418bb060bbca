//go:build e2e

package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exported is the directory that the local NFS server exports.
const exported = "/srv/exported"

// serveNFS starts an NFS server on loopback with a short grace period.
func serveNFS(t *testing.T) {
	t.Helper()
	for file, text := range map[string]string{
		"/etc/exports":                exported + " 127.0.0.1(rw,sync,no_subtree_check,no_root_squash,insecure)\n",
		"/etc/nfs.conf.d/test.conf":   "[nfsd]\ngrace-time=10\nlease-time=10\n",
		filepath.Join(exported, "it"): "served\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "systemctl restart nfs-server")
	t.Cleanup(func() { run(t, "systemctl stop nfs-server") })
}

// run runs a command, which must succeed.
func run(t testing.TB, command string) {
	t.Helper()
	if out, err := system(command); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// dropPackets drops all packets to the NFS server until restore is called.
func dropPackets(t *testing.T) (restore func()) {
	t.Helper()
	run(t, "nft add table ip drop-nfs")
	run(t, "nft add chain ip drop-nfs in { type filter hook input priority 0 ; }")
	run(t, "nft add rule ip drop-nfs in tcp dport 2049 drop")
	return func() { run(t, "nft delete table ip drop-nfs") }
}

// networkMounts returns the mount points of NFS mounts.
func networkMounts(t testing.TB) (at []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if left, right, _ := strings.Cut(line, " - "); strings.HasPrefix(right, "nfs") && !strings.HasPrefix(right, "nfsd") {
			at = append(at, strings.Fields(left)[4])
		}
	}
	return at
}

// netPod returns a pod with an NFS volume at /data.
func netPod(name, volume, script string) string {
	text := pod(name, "", container(name, script, ""))
	text = strings.Replace(text, "volumes: [", "volumes: [{name: net, "+volume+"}, ", 1)
	return strings.Replace(text, "volumeMounts: [", "volumeMounts: [{name: net, mountPath: /data}, {name: net, mountPath: /part, subPath: sub}, ", 1)
}

const inlineNFS = "nfs: {server: 127.0.0.1, path: " + exported + "}"

const claimedNFS = `apiVersion: v1
kind: PersistentVolume
metadata: {name: share}
spec: {accessModes: [ReadWriteMany], capacity: {storage: 1Gi}, storageClassName: net, mountOptions: [nfsvers=4.2, noatime], nfs: {server: 127.0.0.1, path: ` + exported + `}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: share}
spec: {accessModes: [ReadWriteMany], storageClassName: net, resources: {requests: {storage: 1Gi}}}
`

// TestNFS checks NFS volumes in a pod's spec and with a claim. They must stay mounted when podd is
// killed, and must be unmounted with their pods. A server that does not respond must delay only the
// pods that use it, and podd must be able to remove these pods. A pod whose process has unwritten data
// is an exception: the kernel ends the process only after the server has responded and has received
// the data.
func TestNFS(t *testing.T) {
	run(t, "systemctl start podd")
	serveNFS(t)
	write := "cat /data/it >/data/%[1]s && echo part >/part/%[1]s && "
	apply(t, map[string]string{
		"inline": netPod("inline", inlineNFS, fmt.Sprintf(write, "inline")+forever),
		"share":  claimedNFS,
		"claim":  netPod("claim", "persistentVolumeClaim: {claimName: share, readOnly: true}", "! touch /data/no && cat /data/it && "+forever),
	})
	pods := untilReady(t, "inline", "claim")
	before, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod has written to the server", func() error {
		for file, want := range map[string]string{"inline": "served\n", "sub/inline": "part\n"} {
			if text, err := os.ReadFile(filepath.Join(exported, file)); err != nil || string(text) != want {
				return fmt.Errorf("content of %s: got %q, error %v; want %q", file, text, err, want)
			}
		}
		return nil
	})
	mounts := networkMounts(t)
	for _, name := range []string{"inline", "claim"} {
		want := "/var/lib/podd/pods/" + string(pods[name].Pod.UID) + "/volumes/kubernetes.io~nfs/net"
		if !strings.Contains(strings.Join(mounts, " "), want) {
			t.Errorf("NFS mounts of pod %s: got %q, want one at %s", name, mounts, want)
		}
	}
	pid := property(t, "MainPID")
	run(t, "systemctl kill --signal=KILL podd")
	eventually(t, "podd runs again", func() error {
		if now := property(t, "MainPID"); now == pid || now == "0" {
			return fmt.Errorf("got main process %s, want one other than %s", now, pid)
		}
		return nil
	})
	untilReady(t, "inline", "claim")
	after, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now := networkMounts(t); len(now) != len(mounts) || before.running["inline/inline"] != after.running["inline/inline"] {
		t.Errorf("after podd was killed: got NFS mounts at %[1]q and containers %[3]v, want %[2]q and %[4]v", now, mounts, after.running, before.running)
	}
	remove(t, "inline", "claim")
	untilClean(t)
	if left := networkMounts(t); len(left) > 0 {
		t.Errorf("after the pods were removed: got NFS mounts at %q, want none", left)
	}
	t.Run("unresponsive server", testUnresponsiveServer)
}

func testUnresponsiveServer(t *testing.T) {
	apply(t, map[string]string{
		"idle":   netPod("idle", inlineNFS, "cat /data/it && "+forever),
		"reader": netPod("reader", inlineNFS, "echo ready >/data/reader && while :; do cat /data/reader /data/no-$((n+=1)); done"),
		"writer": netPod("writer", inlineNFS, "echo ready >/data/writer; exec >>/data/writer; while :; do echo a line; done"),
	})
	untilReady(t, "idle", "reader", "writer")
	for _, name := range []string{"reader", "writer"} {
		eventually(t, "the pod "+name+" writes", func() error {
			text, err := os.ReadFile(filepath.Join(exported, name))
			if err == nil && len(text) == 0 {
				err = errors.New("got an empty file, want text")
			}
			return err
		})
	}
	restore := dropPackets(t)
	apply(t, map[string]string{
		"late":  netPod("late", inlineNFS, "cat /data/it && "+forever),
		"other": pod("other", "", container("other", forever, "")),
	})
	eventually(t, "pod other is ready and podd why late prints that the server does not respond", func() error {
		if err := areReady("other"); err != nil {
			return err
		}
		return checkWhy("late", "127.0.0.1:"+exported, "did not respond within")
	})
	remove(t, "idle", "reader", "writer")
	eventually(t, "the pods without unwritten data are removed", func() error { return areRemoved("idle", "reader") })
	eventually(t, "podd why names the process that cannot be killed", func() error {
		return checkWhy("writer", "SIGKILL has no effect", `"sh"`)
	})
	if err := areReady("other"); err != nil {
		t.Error(err)
	}
	restore()
	untilReady(t, "other", "late")
	eventually(t, "the pod with unwritten data is removed", func() error { return areRemoved("writer") })
	if text, err := os.ReadFile(filepath.Join(exported, "writer")); err != nil || !strings.HasSuffix(string(text), "\na line\n") {
		t.Errorf("the file of the pod with unwritten data: got %d bytes with the end %q, error %v; want complete lines", len(text), text[max(0, len(text)-20):], err)
	}
	remove(t, "other", "late")
	untilClean(t)
	if left := networkMounts(t); len(left) > 0 {
		t.Errorf("after the pods were removed: got NFS mounts at %q, want none", left)
	}
}

// checkWhy returns an error unless podd why prints all texts for a pod.
func checkWhy(pod string, texts ...string) error {
	out, err := system("/payload/podd why " + pod)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			return fmt.Errorf("podd why %s: got %q, error %v; want all of %q in it", pod, out, err, texts)
		}
	}
	return nil
}

// areReady returns an error unless podd shows every pod as ready.
func areReady(names ...string) error {
	pods, err := view()
	if err != nil {
		return err
	}
	return checkReady(pods, names...)
}

// areRemoved returns an error if podd shows one of the pods.
func areRemoved(names ...string) error {
	pods, err := view()
	if err != nil {
		return err
	}
	for _, name := range names {
		if pods[name] != nil {
			out, _ := system("/payload/podd ps")
			return errors.New(out)
		}
	}
	return nil
}

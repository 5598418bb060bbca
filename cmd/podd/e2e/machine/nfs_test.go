//go:build vm

package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exported is what the machine's own server has for its pods.
const exported = "/srv/exported"

// serveNFS starts a server on loopback, which asks nobody for time to settle.
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

func run(t testing.TB, command string) {
	t.Helper()
	if out, err := system(command); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// silence has the server neither answer nor refuse, and gives it its voice back.
func silence(t *testing.T) (end func()) {
	t.Helper()
	run(t, "nft add table ip silence")
	run(t, "nft add chain ip silence in { type filter hook input priority 0 ; }")
	run(t, "nft add rule ip silence in tcp dport 2049 drop")
	return func() { run(t, "nft delete table ip silence") }
}

// networkMounts are the points at which something of a server is mounted here.
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

// netPod has a volume of the server at /data.
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

// TestNFS: a pod has what a server exports, through a claim as well, podd that was
// killed finds it mounted, and nothing of it is left. A server that is silent
// keeps nobody but its own pods waiting, and not even their end.
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
	before, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod has written", func() error {
		for file, want := range map[string]string{"inline": "served\n", "sub/inline": "part\n"} {
			if text, err := os.ReadFile(filepath.Join(exported, file)); err != nil || string(text) != want {
				return fmt.Errorf("%s holds %q, %v", file, text, err)
			}
		}
		return nil
	})
	mounts := networkMounts(t)
	for _, name := range []string{"inline", "claim"} {
		want := "/var/lib/podd/pods/" + string(pods[name].Pod.UID) + "/volumes/kubernetes.io~nfs/net"
		if !strings.Contains(strings.Join(mounts, " "), want) {
			t.Errorf("of %s nothing is mounted at %s, but at %q", name, want, mounts)
		}
	}
	pid := property(t, "MainPID")
	run(t, "systemctl kill --signal=KILL podd")
	eventually(t, "podd runs again", func() error {
		if now := property(t, "MainPID"); now == pid || now == "0" {
			return errors.New("process " + now)
		}
		return nil
	})
	untilReady(t, "inline", "claim")
	after, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now := networkMounts(t); len(now) != len(mounts) || before.runs["inline/inline"] != after.runs["inline/inline"] {
		t.Errorf("podd was killed, and there are mounts at %q, there were at %q; %v, before %v", now, mounts, after.runs, before.runs)
	}
	remove(t, "inline", "claim")
	untilClean(t)
	if left := networkMounts(t); len(left) > 0 {
		t.Errorf("mounts are left at %q", left)
	}
	t.Run("silent", silent)
}

func silent(t *testing.T) {
	apply(t, map[string]string{
		"idle": netPod("idle", inlineNFS, "cat /data/it && "+forever),
		"busy": netPod("busy", inlineNFS, "echo at work >/data/busy && while :; do date >>/data/busy; done"),
	})
	untilReady(t, "idle", "busy")
	eventually(t, "the pod writes", func() error {
		text, err := os.ReadFile(filepath.Join(exported, "busy"))
		if err == nil && len(text) < 100 {
			err = errors.New("it does not")
		}
		return err
	})
	end := silence(t)
	apply(t, map[string]string{
		"late":  netPod("late", inlineNFS, "cat /data/it && "+forever),
		"other": pod("other", "", container("other", forever, "")),
	})
	eventually(t, "another pod is ready and the late one tells why it is not", func() error {
		pods, err := view()
		if err != nil {
			return err
		}
		if p := pods["other"]; p == nil || !p.Ready {
			return errors.New("the other pod is not ready")
		}
		out, err := system("/payload/podd why late")
		if !strings.Contains(out, "127.0.0.1:"+exported) || !strings.Contains(out, "did not answer within") {
			return fmt.Errorf("podd says %q, %v", out, err)
		}
		t.Log(out)
		return nil
	})
	remove(t, "idle", "busy")
	eventually(t, "pods end all the same", func() error {
		pods, err := view()
		if err == nil && (pods["idle"] != nil || pods["busy"] != nil) {
			out, _ := system("/payload/podd ps")
			err = errors.New(out)
		}
		return err
	})
	for _, at := range networkMounts(t) {
		t.Errorf("a mount is left at %s", at)
	}
	end()
	untilReady(t, "other", "late")
	remove(t, "other", "late")
	untilClean(t)
	if left := networkMounts(t); len(left) > 0 {
		t.Errorf("mounts are left at %q", left)
	}
}

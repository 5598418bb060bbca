//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// resolverPod returns a pod that writes its resolver configuration to /trace/name-version. A
// change of the version replaces the pod.
func (d *daemon) resolverPod(name, version string) *v1.Pod {
	c := shell("main", writeTrace(name+"-"+version, "cat /etc/resolv.conf")+serve(name))
	c.Env = []v1.EnvVar{{Name: "VERSION", Value: version}}
	return d.pod(name, c)
}

// nameServers waits until a version of a pod has started, and returns its name servers.
func (d *daemon) nameServers(name, version string) string {
	d.t.Helper()
	d.untilApplied(name)
	return parseNameServers(d.readTrace(name + "-" + version))
}

// parseNameServers returns the name servers in a resolver configuration, separated by spaces.
func parseNameServers(resolvConf string) string {
	var all []string
	for line := range strings.Lines(resolvConf) {
		if server, ok := strings.CutPrefix(line, "nameserver "); ok {
			all = append(all, strings.TrimSpace(server))
		}
	}
	return strings.Join(all, " ")
}

// wantNameServers fails the test unless the name servers of a version of a pod are want.
func (d *daemon) wantNameServers(name, version, want string) {
	d.t.Helper()
	if got := d.nameServers(name, version); got != want {
		d.t.Errorf("pod %s, version %s: got the name servers %q, want %q", name, version, got, want)
	}
}

// TestResolvConfChanges changes the file of --resolv-conf as DHCP clients do, in place or by a rename.
// Pods that start or are replaced afterwards must have the new name servers. All other pods must keep
// running with their name servers, also after a restart of podd.
func TestResolvConfChanges(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	conf := filepath.Join(d.dir, "resolv.conf")
	d.args = append(d.args, "--resolv-conf", conf)
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(conf+".new", []byte(text), 0o644), os.Rename(conf+".new", conf)); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("nameserver 192.0.2.1\n")
	d.start()
	d.apply(d.resolverPod("web", "1"))
	d.wantNameServers("web", "1", "192.0.2.1")
	was := d.container("web", "main")

	replace("# lease\nnameserver 192.0.2.2\nnameserver 2001:db8::2\n")
	d.apply(d.resolverPod("second", "1"), d.resolverPod("edited", "1"))
	d.wantNameServers("second", "1", "192.0.2.2 2001:db8::2")
	d.wantNameServers("edited", "1", "192.0.2.2 2001:db8::2")

	rewrite("nameserver 192.0.2.3\n")
	d.apply(d.resolverPod("edited", "2"))
	d.wantNameServers("edited", "2", "192.0.2.3")

	// While the file cannot be read, no pod starts and none stops, and podd can be started.
	if err := errors.Join(os.Remove(conf), os.Mkdir(conf, 0o755)); err != nil {
		t.Fatal(err)
	}
	d.crash()
	d.apply(d.resolverPod("late", "1"))
	d.untilProblem("late", conf)
	d.untilProblem(conf, "no pod starts until the file can be read")
	if _, err := os.Stat(filepath.Join(d.traceDir(), "late-1")); err == nil {
		t.Error("pod late while the resolver configuration cannot be read: got its file in /trace, want none, because the pod must not start")
	}
	if err := os.Remove(conf); err != nil {
		t.Fatal(err)
	}
	replace("nameserver 192.0.2.4\n")
	d.wantNameServers("late", "1", "192.0.2.4")
	d.untilNoProblems()

	// With an empty file podd requests no name servers. Some runtimes then use the name servers of
	// the host.
	rewrite("")
	d.apply(d.resolverPod("none", "1"))
	host, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.nameServers("none", "1"); got != "" && got != parseNameServers(string(host)) {
		t.Errorf("pod none with an empty resolver configuration: got the name servers %q, want none or the host's", got)
	}
	rewrite("nameserver 192.0.2.5\n")
	d.apply(d.resolverPod("none", "2"))
	d.wantNameServers("none", "2", "192.0.2.5")

	if now := d.container("web", "main"); now != was {
		t.Errorf("container of pod web after all changes: got %+v, want %+v", now, was)
	}
	d.until("no container was restarted", func(v *server.View) error {
		for _, p := range v.Pods {
			if n := restarts(p, "main"); n != 0 {
				return fmt.Errorf("pod %s: got %d restarts, want 0", p.Pod.Name, n)
			}
		}
		return nil
	})
	for pod, want := range map[string]string{"web": "192.0.2.1", "second": "192.0.2.2", "edited": "192.0.2.3"} {
		text, _ := d.verb("exec", d.podName(pod), "--", "cat", "/etc/resolv.conf")
		if got, _, _ := strings.Cut(parseNameServers(text), " "); got != want {
			t.Errorf("pod %s after all changes: got the first name server %q, want %s", pod, got, want)
		}
	}
}

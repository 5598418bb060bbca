//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/runtime/runtimetest/stack"
)

// TestCp copies files and directories into and out of containers. The program tar of one container is
// malicious: its archive would write the file /owned on the host through a symlink.
func TestCp(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	fake := `mkdir /fake; cd /fake; mkdir -p in; echo evil >in/file; ln -s / in/way
		printf '#!/bin/sh\ncat /fake/tar' >/bin/tar.new; tar cf one in/way; mkdir -p in2/way; echo evil >in2/way/owned; ln -s in2 x
		tar cf /fake/tar in in2/way/owned; chmod +x /bin/tar.new; mv /bin/tar.new /bin/tar; `
	d.apply(d.pod("web", shell("main", "mkdir /tmp; "+serve("main")), shell("hostile", fake+serve("hostile"))),
		d.pod("bare", v1.Container{Name: "main", Image: stack.WebImage}))
	d.untilApplied("web")
	d.untilApplied("bare")
	// A container without a readiness probe is ready before its script has run.
	d.untilNotedUnordered("hostile runs", "main runs")
	here := t.TempDir()
	at := func(name string) string { return filepath.Join(here, name) }
	content := make([]byte, 3<<20)
	rand.Read(content)
	for _, err := range []error{
		os.MkdirAll(at("src/deep"), 0o755), os.WriteFile(at("src/deep/big"), content, 0o640), os.WriteFile(at("src/run"), []byte("#!"), 0o755),
		os.Symlink("run", at("src/link")), os.Mkdir(at("into"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cp := func(words ...string) string {
		t.Helper()
		out, stderr, code := d.outcome(nil, append([]string{"cp", "-c", "main"}, words...)...)
		if code != 0 || out != "" {
			t.Fatalf("podd cp %v: got stdout %q, stderr %q, exit code %d; want exit code 0 and no output", words, out, stderr, code)
		}
		return stderr
	}
	cp(at("src"), "web:/tmp/copy")
	cp(at("src/deep/big"), "default/web:/tmp/")
	if out, _ := d.verb("exec", "-q", "web", "--", "sh", "-c", "cd /tmp; stat -c '%n %a %s' copy/deep/big copy/run big; readlink copy/link"); out != fmt.Sprintf("copy/deep/big 640 %d\ncopy/run 755 2\nbig 640 %[1]d\nrun\n", len(content)) {
		t.Errorf("copied files in the container: got %q, want the modes, sizes and symlink of the originals", out)
	}
	if stderr, want := cp("web:/tmp/copy", at("back")), "skipped ./copy/link: symbolic link"; !strings.Contains(stderr, want) {
		t.Errorf("podd cp of a symlink: got %q, want %q in it", stderr, want)
	}
	cp("web:/tmp/copy/deep/big", at("into"))
	cp("web:/tmp/big", at("other"))
	for _, name := range []string{"back/deep/big", "into/big", "other"} {
		if got, err := os.ReadFile(at(name)); !bytes.Equal(got, content) {
			t.Errorf("copied file %s: got %d bytes, error %v; want the %d bytes of the original", name, len(got), err, len(content))
		}
	}
	for want, words := range map[string][]string{
		"below the requested":                      {"-c", "hostile", "web:/tmp/x", at("hostile")},
		`no program tar, which "podd cp" requires`: {"bare:/etc", at("bare")},
		"no such file":                             {at("none"), "web:/tmp/"},
		"exited with code 1":                       {"-c", "main", "web:/tmp/none", at("none")},
		"one of the two":                           {at("src"), at("other")},
	} {
		if _, stderr, code := d.outcome(nil, append([]string{"cp"}, words...)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("podd cp %v: got stderr %q and exit code %d, want %q in stderr and an exit code other than 0", words, stderr, code, want)
		}
	}
	if _, err := os.Lstat("/owned"); err == nil {
		t.Error("after podd cp from the hostile container: got the file /owned on the host, want none")
	}
}

// TestPortForward checks that podd port-forward serves many clients at once, also after the pod
// was replaced.
func TestPortForward(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	web := v1.Container{Name: "web", Image: stack.WebImage, Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}}
	echo := shell("echo", "while :; do nc -l -p 7777 -e cat; done")
	p := d.pod("web", web, echo)
	p.Spec.TerminationGracePeriodSeconds = new(int64(1))
	d.apply(p)
	d.untilApplied("web")
	cmd := d.command("port-forward", "web", ":http", ":7777", "--address", "127.0.0.1")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = in, &stderr
	err = cmd.Start()
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]byte, 0, 200)
	for bytes.Count(lines, []byte("\n")) < 2 {
		var b [1]byte
		if _, err := out.Read(b[:]); err != nil {
			t.Fatalf("podd port-forward: got %q and then error %v, want two lines", lines, err)
		}
		lines = append(lines, b[0])
	}
	found := regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> 8080\nForwarding from (127\.0\.0\.1:\d+) -> 7777\n$`).FindSubmatch(lines)
	if found == nil {
		t.Fatalf("podd port-forward: got %q, want two forwarded addresses", lines)
	}
	get := func() error {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Get("http://" + string(found[1]) + "/")
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if text, err := io.ReadAll(reply.Body); string(text) != "hello from "+d.podName("web")+"\n" {
			return fmt.Errorf("got response %q, error %v; want %q", text, err, "hello from "+d.podName("web")+"\n")
		}
		return nil
	}
	d.eventually("the pod responds", get)
	results := make(chan error)
	for range 8 {
		go func() { results <- get() }()
	}
	for range 8 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	d.eventually("data is forwarded in both directions", func() error {
		conn, err := net.Dial("tcp", string(found[2]))
		if err != nil {
			return err
		}
		defer conn.Close()
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<15)
		go conn.Write(sent)
		got := make([]byte, len(sent))
		if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
			return fmt.Errorf("got %d bytes back, error %v; want the bytes that were sent", n, err)
		}
		return nil
	})
	p = p.DeepCopy()
	p.Labels = map[string]string{"again": "yes"}
	p.Spec.Hostname = "other"
	d.apply(p)
	d.untilApplied("web")
	d.eventually("the replaced pod responds", func() error {
		reply, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + string(found[1]) + "/")
		if err == nil {
			reply.Body.Close()
		}
		return err
	})
	cmd.Process.Signal(os.Interrupt)
	if code := exitCode(t, cmd.Wait()); code != 130 || t.Failed() {
		t.Errorf("podd port-forward: got exit code %d, want 130; stderr %s", code, stderr.String())
	}
}

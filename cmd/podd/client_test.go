package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podd/server"
)

func TestNobodyAnswers(t *testing.T) {
	dir := shortDir(t)
	dead := shortDir(t)
	ln, err := net.Listen("unix", filepath.Join(dead, server.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	for where, want := range map[string]string{
		dir:  "podd: podd is not running (no socket at " + dir + "/podd.sock); start it with: podd --run-dir " + dir + " --pod-manifest-path DIR\n",
		dead: "podd: podd is not running (nobody answers at " + dead + "/podd.sock); start it with: podd --run-dir " + dead + " --pod-manifest-path DIR\n",
	} {
		for _, words := range [][]string{{"ps"}, {"why", "web"}, {"logs", "web"}, {"restart", "web"}, {"down"}} {
			got := poddVerb(t.Context(), append(words, "--run-dir", where)...)
			if got.Code != 1 || got.Err != want || got.Out != "" {
				t.Errorf("%v: %+v, want %s", words, got, want)
			}
		}
	}
}

// TestSocketIsFound: by flag, by the environment, in the checkout.
func TestSocketIsFound(t *testing.T) {
	checkout := shortDir(t)
	t.Chdir(checkout)
	f := &fakePodd{Latest: server.NewLatest(viewOf()), dir: filepath.Join(checkout, checkoutRunDir)}
	f.serve(t)
	other := serve(t, &server.View{Node: "other"})
	for name, c := range map[string]struct {
		env, flag, want string
	}{
		"checkout":    {want: "n1"},
		"environment": {env: other.dir, want: "other"},
		"flag":        {env: checkout, flag: other.dir, want: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("PODD_RUN_DIR", c.env)
			}
			words := []string{"ps", "-o", "json"}
			if c.flag != "" {
				words = append(words, "--run-dir", c.flag)
			}
			if got := poddVerb(t.Context(), words...); !strings.Contains(got.Out, `"node": "`+c.want+`"`) {
				t.Errorf("%+v, want node %s", got, c.want)
			}
		})
	}
}

// TestKilledInCheckout: of a podd of make run that was killed it is told where it
// was, and how to have it again.
func TestKilledInCheckout(t *testing.T) {
	checkout := shortDir(t)
	t.Chdir(checkout)
	if err := os.MkdirAll(checkoutRunDir, 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", filepath.Join(checkoutRunDir, server.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	const want = "podd is not running (nobody answers at .run/run/podd.sock); start it with: make run"
	if _, err := nearer(t.Context(), newPeer(checkoutRunDir), newPeer(shortDir(t))); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	f := serve(t, viewOf())
	if p, err := nearer(t.Context(), newPeer(checkoutRunDir), newPeer(f.dir)); err != nil || p.socket != newPeer(f.dir).socket {
		t.Errorf("beside another: %v", err)
	}
}

// TestOtherServers: somebody else than podd answers.
func TestOtherServers(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nwhat": "answered 404 Not Found to GET /v1/state; is it of another version?",
		"SSH-2.0-OpenSSH\r\n": "malformed HTTP response",
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome": "reading the answer of podd at ",
		"": "EOF",
	} {
		dir := shortDir(t)
		ln, err := net.Listen("unix", filepath.Join(dir, server.SocketName))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				c.Read(make([]byte, 1024))
				c.Write([]byte(answer))
				c.Close()
			}
		}()
		got := poddVerb(t.Context(), "ps", "--run-dir", dir)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%q: %+v, want %s", answer, got, want)
		}
		ln.Close()
		<-done
	}
}

func TestInterrupted(t *testing.T) {
	f := serve(t, viewOf(up(podAt("a.yaml", 1, "a", "app"))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, words := range [][]string{{"ps", "-w"}, {"wait", "a"}, {"logs", "-f", "a"}} {
		if got := poddVerb(ctx, append(words, "--run-dir", f.dir)...); got.Code != codeInterrupted || got.Err != "" {
			t.Errorf("%v: %+v", words, got)
		}
	}
}

// TestWatchOutlived: podd ends while it is watched.
func TestWatchOutlived(t *testing.T) {
	f := &fakePodd{Latest: server.NewLatest(viewOf(up(podAt("a.yaml", 1, "a", "app")))), dir: shortDir(t)}
	stop := f.serve(t)
	p := newPeer(f.dir)
	err := p.watch(t.Context(), func(*server.View) (bool, error) {
		go stop() // serve's cleanup waits for it
		return false, nil
	})
	if !errors.Is(err, errPoddEnded) {
		t.Errorf("watch ended with %v", err)
	}
}

func TestNamesOfPods(t *testing.T) {
	in := func(namespace, name string) *server.PodView {
		p := podAt("a.yaml", 1, name, "app")
		p.Pod.Namespace = namespace
		return p
	}
	v := viewOf(in("default", "web"), in("prod", "web"), in("prod", "db"), in("prod", "db-n1"), in("test", "api"))
	for _, c := range []struct {
		namespace, word, want string
	}{
		{"", "api", "test/api-n1"},
		{"", "api-n1", "test/api-n1"},
		{"", "test/api", "test/api-n1"},
		{"", "pod/api", "test/api-n1"},
		{"prod", "po/web", "prod/web-n1"},
		{"", "pods/wbe", `no pod "wbe"; did you mean "web"?`},
		{"test", "test/api-n1", "test/api-n1"},
		{"prod", "web", "prod/web-n1"},
		{"", "db", "prod/db-n1"},
		{"", "db-n1-n1", "prod/db-n1-n1"},
		{"", "web", `"web" is default/web-n1 and prod/web-n1: say which, as NAMESPACE/NAME`},
		{"", "db-n1", `"db-n1" is prod/db-n1 and prod/db-n1-n1: say which, as NAMESPACE/NAME`},
		{"default", "api", `no pod "api" in namespace default; there is test/api-n1`},
		{"default", "test/api", `"test/api" is not in namespace default, which -n asks for`},
		{"", "wbe", `no pod "wbe"; did you mean "web"?`},
		{"", "prod/wbe", `no pod "prod/wbe"; did you mean "web"?`},
		{"", "anything", `no pod "anything"; podd ps lists them`},
		{"", "", `no pod ""; podd ps lists them`},
		{"", "/", `no pod "/"; podd ps lists them`},
	} {
		got := ""
		if p, err := (Select{Namespace: c.namespace}).findPod(v, c.word); err != nil {
			got = err.Error()
		} else {
			got = p.Key().String()
		}
		if got != c.want {
			t.Errorf("-n %q %q: %s, want %s", c.namespace, c.word, got, c.want)
		}
	}
	if _, err := (Select{}).findPod(viewOf(), "web"); err == nil || err.Error() != `no pod "web"; podd runs none` {
		t.Errorf("of no pods: %v", err)
	}
	for _, p := range v.Pods {
		word := wordFor(v, p.Key())
		if found, err := (Select{}).findPod(v, word); err != nil || found != p {
			t.Errorf("%s is called %q, which finds %v, %v", p.Key(), word, found, err)
		}
	}
}

func TestNoRights(t *testing.T) {
	dir := shortDir(t)
	p := newPeer(dir)
	err := p.explain(t.Context(), &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", os.ErrPermission)})
	if err == nil || !strings.HasSuffix(err.Error(), "only root may, try with sudo") {
		t.Errorf("%v", err)
	}
}

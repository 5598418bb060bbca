package cli

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/poddtest"
	"podd/server"
)

// TestConnect_NotRunning checks the error of several verbs if the socket of podd does not exist, and if
// no process listens on the socket.
func TestConnect_NotRunning(t *testing.T) {
	empty := poddtest.ShortDir(t)
	killed := poddtest.ShortDir(t)
	ln, err := net.Listen("unix", filepath.Join(killed, server.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	for runDir, want := range map[string]string{
		empty:  "podd: podd is not running (no socket at " + empty + "/podd.sock); start it with: podd --run-dir " + empty + " --pod-manifest-path DIR\n",
		killed: "podd: podd is not running (connection refused at " + killed + "/podd.sock); start it with: podd --run-dir " + killed + " --pod-manifest-path DIR\n",
	} {
		for _, words := range [][]string{{"ps"}, {"why", "web"}, {"logs", "web"}, {"restart", "web"}, {"down"}} {
			got := poddVerb(t.Context(), append(words, "--run-dir", runDir)...)
			if got.Code != 1 || got.Err != want || got.Out != "" {
				t.Errorf("%q: got %+v, want exit code 1 and the error %q", words, got, want)
			}
		}
	}
}

// TestConnect_FindsSocket checks that a verb finds the socket by --run-dir, by PODD_RUN_DIR, or in the
// directory .run/run of the checkout that is the working directory.
func TestConnect_FindsSocket(t *testing.T) {
	checkout := poddtest.ShortDir(t)
	t.Chdir(checkout)
	f := &poddtest.Podd{LatestView: server.NewLatestView(poddtest.NewView()), Dir: filepath.Join(checkout, ".run", "run")}
	f.Start(t)
	other := poddtest.Serve(t, &server.View{Node: "other"})
	for name, c := range map[string]struct {
		env, flag, want string
	}{
		"checkout":    {want: "n1"},
		"environment": {env: other.Dir, want: "other"},
		"flag":        {env: checkout, flag: other.Dir, want: "other"},
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
				t.Errorf("got %+v, want the state of node %s", got, c.want)
			}
		})
	}
}

// TestConnect_OtherServers checks the error if a program other than podd responds on the socket.
func TestConnect_OtherServers(t *testing.T) {
	for response, want := range map[string]string{
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nwhat": "returned 404 Not Found for GET /v1/state; the running podd may have a different version; restart it",
		"SSH-2.0-OpenSSH\r\n": "malformed HTTP response",
		"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwelcome": "decoding the response of podd at ",
		"": "EOF",
	} {
		dir := poddtest.ShortDir(t)
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
				c.Write([]byte(response))
				c.Close()
			}
		}()
		got := poddVerb(t.Context(), "ps", "--run-dir", dir)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("response %q: got %+v, want exit code 1 and one line that contains %q", response, got, want)
		}
		ln.Close()
		<-done
	}
}

// TestVerbs_Interrupted checks that verbs that wait or follow end without an error message after a
// signal, here a canceled context.
func TestVerbs_Interrupted(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, words := range [][]string{{"ps", "-w"}, {"wait", "a"}, {"logs", "-f", "a"}} {
		if got := poddVerb(ctx, append(words, "--run-dir", f.Dir)...); got.Code != exit.Interrupted || got.Err != "" {
			t.Errorf("%q: got %+v, want exit code %d and no stderr", words, got, exit.Interrupted)
		}
	}
}

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

func TestConnect_NotRunning(t *testing.T) {
	dir := poddtest.ShortDir(t)
	dead := poddtest.ShortDir(t)
	ln, err := net.Listen("unix", filepath.Join(dead, server.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	for runDir, want := range map[string]string{
		dir:  "podd: podd is not running (no socket at " + dir + "/podd.sock); start it with: podd --run-dir " + dir + " --pod-manifest-path DIR\n",
		dead: "podd: podd is not running (connection refused at " + dead + "/podd.sock); start it with: podd --run-dir " + dead + " --pod-manifest-path DIR\n",
	} {
		for _, words := range [][]string{{"ps"}, {"why", "web"}, {"logs", "web"}, {"restart", "web"}, {"down"}} {
			got := poddVerb(t.Context(), append(words, "--run-dir", runDir)...)
			if got.Code != 1 || got.Err != want || got.Out != "" {
				t.Errorf("%v: got %+v, want %s", words, got, want)
			}
		}
	}
}

// TestConnect_FindsSocket checks the three ways to find the socket: the flag, the
// environment variable and a checkout.
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
				t.Errorf("got %+v, want node %s", got, c.want)
			}
		})
	}
}

// TestConnect_OtherServers checks the error if a program other than podd serves the socket.
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
			t.Errorf("response %q: got %+v, want %s", response, got, want)
		}
		ln.Close()
		<-done
	}
}

func TestVerbs_Interrupted(t *testing.T) {
	f := poddtest.Serve(t, poddtest.NewView(poddtest.SetRunning(poddtest.NewPod("a.yaml", 1, "a", "app"))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, words := range [][]string{{"ps", "-w"}, {"wait", "a"}, {"logs", "-f", "a"}} {
		if got := poddVerb(ctx, append(words, "--run-dir", f.Dir)...); got.Code != exit.Interrupted || got.Err != "" {
			t.Errorf("%v: got %+v, want exit code %d", words, got, exit.Interrupted)
		}
	}
}

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"sigs.k8s.io/yaml"
)

// credentialIn returns the client certificate of a kubeconfig.
func credentialIn(t *testing.T, file string) tls.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil || len(config.Users) != 1 {
		t.Fatalf("reading %s: got %d users, error %v; want 1 user", file, len(config.Users), err)
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Cert, config.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestKubeconfigFile checks that only the owner can read the file that podd kubeconfig writes, even if
// this file replaces one that others could read. If stdout is a file that others can read, podd must
// print a warning. The credential must expire after the requested duration.
func TestKubeconfigFile(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	d.api = freePort(t)
	d.start()
	k := d.kubectl()
	k.config = filepath.Join(d.dir, "k")
	if err := os.WriteFile(k.config, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, stderr := d.verb("kubeconfig", "--output", k.config, "--duration", "2h")
	if !strings.Contains(out, "valid until") || strings.Contains(out+stderr, "client-key-data") {
		t.Errorf("podd kubeconfig: got stdout %s, stderr %s; want %q in stdout and no key in either", out, stderr, "valid until")
	}
	if info, err := os.Stat(k.config); err != nil || info.Mode() != 0o600 {
		t.Errorf("file of podd kubeconfig: got %v, error %v; want mode 0600", info, err)
	}
	if left := time.Until(credentialIn(t, k.config).Leaf.NotAfter); left < 110*time.Minute || left > 2*time.Hour {
		t.Errorf("remaining validity of the credential: got %s, want up to 10 minutes less than 2h", left)
	}
	k.wantOutput("auth whoami", "podd-admin", "system:masters")

	for mode, want := range map[os.FileMode]string{0o644: "warning: other users can read", 0o600: ""} {
		file, err := os.OpenFile(filepath.Join(d.dir, fmt.Sprintf("k%o", mode)), os.O_CREATE|os.O_WRONLY, mode)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary, "kubeconfig")
		cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
		cmd.Stdout, cmd.Stderr = file, &stderr
		if err := errors.Join(file.Chmod(mode), cmd.Run(), file.Close()); err != nil {
			t.Fatalf("podd kubeconfig with stdout in a file: %v: %s", err, &stderr)
		}
		if got := stderr.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("podd kubeconfig with stdout in a file of mode %04o: got stderr %q, want %q", mode, got, want)
		}
	}
}

// watch starts a watch of the pods. It ends after the timeout patience or at the end of the test.
func (c *client) watch(token string) io.Reader {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	c.t.Cleanup(cancel)
	resp := c.send(ctx, http.MethodGet, "/api/v1/pods?watch=1", token)
	c.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		c.t.Fatalf("watching pods: got %s, want 200", resp.Status)
	}
	return resp.Body
}

// TestKubeconfigRevoke checks that podd kubeconfig --revoke permanently revokes all credentials
// that podd has issued, and closes the connections that use them. Other clients, pods and the
// listener must not be affected.
func TestKubeconfigRevoke(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("abc,prom,1,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, shared, "--token-auth-file", tokens)
	d.api = freePort(t)
	d.start()
	d.apply(d.pod("web", shell("main", serve("main"))))
	d.untilApplied("web")
	before := d.container("web", "main")
	issue := func(name string) *client {
		t.Helper()
		file := filepath.Join(d.dir, name)
		d.verb("kubeconfig", "--output", file)
		// The client does not verify podd's certificate, so that only podd can reject the
		// connection.
		return d.client(fmt.Sprintf("https://127.0.0.1:%d", d.api), &tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{credentialIn(t, file)}, ClientSessionCache: tls.NewLRUClientSessionCache(8),
		})
	}
	token := d.client(fmt.Sprintf("https://127.0.0.1:%d", d.api), &tls.Config{InsecureSkipVerify: true})
	first, second := issue("first"), issue("second")
	checkStatus := func(who string, c *client, token string, want int) {
		t.Helper()
		if status, text := c.request("GET", "/pods", token); status != want {
			t.Errorf("GET /pods with %s: got status %d, body %.100s; want status %d", who, status, text, want)
		}
	}
	checkStatus("the first credential", first, "", 200)
	checkStatus("the second credential", second, "", 200)
	checkStatus("the token", token, "abc", 200)
	cat := first.stream("/exec/default/"+d.podName("web")+"/main?command=cat&input=1&output=1", "v4.channel.k8s.io")
	websocket.Message.Send(cat, []byte("\x00hello\n"))
	readChannel(t, cat, 1, "hello\n")
	watch, kept := second.watch(""), token.watch("abc")

	out, _ := d.verb("kubeconfig", "--revoke")
	if !strings.Contains(out, "all earlier credentials are revoked; connections closed: ") {
		t.Errorf("podd kubeconfig --revoke: got %q, want %q in it", out, "all earlier credentials are revoked; connections closed: ")
	}
	if err := cat.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for frame, err := []byte(nil), error(nil); err == nil; { // output that was already sent may come first
		if err = websocket.Message.Receive(cat, &frame); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection of kubectl exec with a revoked credential: got it open after %s, want it closed", patience)
		}
	}
	if _, err := io.Copy(io.Discard, watch); errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("watch with a revoked credential: got it open after %s, want it closed", patience)
	}
	checkStatus("the first credential, revoked", first, "", 401)
	checkStatus("the second credential, revoked", second, "", 401)
	checkStatus("the token", token, "abc", 200)
	d.apply(d.pod("late", shell("main", serve("late"))))
	d.untilApplied("late")
	for lines := bufio.NewReader(kept); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("watch with a token, which is not revoked: got %v, want it to continue", err)
		}
		if strings.Contains(line, d.podName("late")) {
			break
		}
	}
	third := issue("third")
	checkStatus("the third credential, issued after the revocation", third, "", 200)
	d.kubectl().wantOutput("get pods", d.podName("web"))

	d.crash()
	checkStatus("the first credential, after a restart of podd", first, "", 401)
	checkStatus("the third credential, after a restart of podd", third, "", 200)
	if now := d.container("web", "main"); now != before {
		t.Errorf("container after the revocation and a restart of podd: got %+v, want %+v", now, before)
	}
}

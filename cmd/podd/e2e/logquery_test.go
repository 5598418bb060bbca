//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKubeletAPI_LogQuery checks queries for the logs of services. For some services podd runs
// journalctl, which is a script in this test. For others it reads files in /var/log, where it must not
// follow links out of this directory.
func TestKubeletAPI_LogQuery(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, shared)
	programs, config := filepath.Join(d.dir, "programs"), filepath.Join(d.dir, "config.yaml")
	service := "podd-test-" + filepath.Base(d.on.Dir) + "-" + d.node
	logs := filepath.Join("/var/log", service)
	t.Cleanup(func() { os.RemoveAll(logs) })
	for _, err := range []error{
		os.Mkdir(programs, 0o755),
		os.WriteFile(filepath.Join(programs, "journalctl"), []byte("#!/bin/sh\n[ \"$2\" = --field=_SYSTEMD_UNIT ] && echo kubelet.service && exit\necho \"$0 $* $SECRET\"\n"), 0o755),
		os.WriteFile(config, []byte("{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, enableSystemLogQuery: true}"), 0o600),
		os.Mkdir(logs, 0o755),
		os.WriteFile(filepath.Join(logs, service+".log"), []byte("file line\n"), 0o600),
		os.Symlink(config, filepath.Join(logs, "absolute")),
		os.Symlink("../../../etc/hosts", filepath.Join(logs, "out")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.api = freePort(t)
	d.args = append(d.args, "--config", config)
	d.env = []string{"PATH=" + programs + ":" + os.Getenv("PATH"), "SECRET=hunter2"}
	d.start()
	c := d.admin()
	for query, want := range map[string]string{
		"/logs/?query=kubelet&tailLines=5&boot=0":   filepath.Join(programs, "journalctl") + " --utc --no-pager --output=short-precise --lines=5 --unit=kubelet --boot=0 \n",
		"/logs/?query=" + service:                   "file line\n",
		"/logs/?query=/" + service + "/":            "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n<a href=\"absolute\">absolute</a>\n<a href=\"out\">out</a>\n<a href=\"" + service + ".log\">" + service + ".log</a>\n</pre>\n",
		"/logs/" + service + "/" + service + ".log": "file line\n",
	} {
		if status, text := c.request("GET", query, ""); status != 200 || text != want {
			t.Errorf("GET %s: got status %d, body %q; want status 200, body %q", query, status, text, want)
		}
	}
	for query, want := range map[string]int{
		"/logs/?query=/" + service + "/absolute": 406,
		"/logs/?query=/" + service + "/out":      406,
		"/logs/?query=../../etc/hosts":           406,
		"/logs/?query=-D%20/etc":                 406,
		"/logs/" + service + "/out":              404,
		"/logs/?query=":                          400,
	} {
		if status, text := c.request("GET", query, ""); status != want {
			t.Errorf("GET %s: got status %d, body %q; want status %d", query, status, text, want)
		}
	}
	if status, text := c.request("POST", "/logs/?query=kubelet", ""); status != 405 {
		t.Errorf("POST /logs/: got status %d, body %q; want status 405", status, text)
	}
}

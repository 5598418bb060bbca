package main

import (
	"cmp"
	"crypto/tls"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
	"podd/server/pki"
)

// TestKubeletTLS: versions, ciphers and the certificate are those configured, and
// the certificate is the one that is in the files now.
func TestKubeletTLS(t *testing.T) {
	const wide, narrow = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	for name, c := range map[string]struct {
		min, cipher string // configured
		client      *tls.Config
		want        string // the version that is spoken; "" for none
	}{
		"the newest":            {client: &tls.Config{}, want: "TLS 1.3"},
		"1.2":                   {client: &tls.Config{MaxVersion: tls.VersionTLS12}, want: "TLS 1.2"},
		"1.1":                   {client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		"1.2 where 1.3 is due":  {min: "VersionTLS13", client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"1.3 where 1.3 is due":  {min: "VersionTLS13", client: &tls.Config{}, want: "TLS 1.3"},
		"the cipher":            {cipher: wide, client: &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, want: "TLS 1.2"},
		"not one of the cipher": {cipher: narrow, client: &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}},
	} {
		t.Run(name, func(t *testing.T) {
			files := &shownFiles{t: t, dir: t.TempDir()}
			files.write("first")
			flags := config.Flags{TLSCertFile: new(files.path("crt")), TLSPrivateKeyFile: new(files.path("key"))}
			if c.cipher != "" {
				flags.TLSCipherSuites = []string{c.cipher}
			}
			flags.TLSMinVersion = new(cmp.Or(c.min, "VersionTLS12"))
			conf := tlsOf(t, flags)
			version, shown := shakeHands(conf, c.client)
			if version != c.want || (shown == "first") != (c.want != "") {
				t.Fatalf("it speaks %q and shows %q, want %q", version, shown, c.want)
			}
			files.write("second")
			if _, shown = shakeHands(conf, c.client); (shown == "second") != (c.want != "") {
				t.Errorf("it shows %q", shown)
			}
		})
	}
}

// tlsOf is what the kubelet's port is served with under some flags.
func tlsOf(t *testing.T, flags config.Flags) *tls.Config {
	t.Helper()
	root := t.TempDir()
	endpoint := "unix://" + filepath.Join(root, "no.sock")
	flags.RootDir, flags.RunDir, flags.ContainerRuntimeEndpoint, flags.PodManifestPath = root, filepath.Join(root, "run"), &endpoint, []string{root}
	cfg, _, err := config.Load(flags, config.Machine{Program: "podd", Hostname: "n1", CgroupV2: true})
	if err != nil {
		t.Fatal(err)
	}
	d, err := newPodd(&cfg, slog.New(slog.DiscardHandler), &logLevel{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	conf, err := d.kubeletTLS()
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// shakeHands is the version that both speak and whom the server says it is.
func shakeHands(server, client *tls.Config) (version, shown string) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go tls.Server(far, server).Handshake()
	client = client.Clone()
	client.InsecureSkipVerify = true
	conn := tls.Client(near, client)
	if conn.Handshake() != nil {
		return "", ""
	}
	state := conn.ConnectionState()
	return tls.VersionName(state.Version), state.PeerCertificates[0].Subject.CommonName
}

// shownFiles are a certificate and its key.
type shownFiles struct {
	t   *testing.T
	dir string
}

func (f *shownFiles) path(name string) string { return filepath.Join(f.dir, name) }

// write replaces both by those of somebody.
func (f *shownFiles) write(name string) {
	f.t.Helper()
	ca, err := pki.New("test")
	if err != nil {
		f.t.Fatal(err)
	}
	cert, key, err := ca.Client(name, nil, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}
	for file, text := range map[string][]byte{"crt": cert, "key": key} {
		if err := os.WriteFile(f.path(file+".new"), text, 0o600); err != nil {
			f.t.Fatal(err)
		}
		if err := os.Rename(f.path(file+".new"), f.path(file)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestSystemLogs: what a container planted among the logs is not there.
func TestSystemLogs(t *testing.T) {
	dir := t.TempDir()
	logs := systemLogs{filepath.Join(dir, "log")}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(logs.dir, "pods"), 0o700),
		os.WriteFile(filepath.Join(dir, "shadow"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(logs.dir, "syslog"), []byte("line"), 0o600),
		os.Symlink("syslog", filepath.Join(logs.dir, "latest")),
		os.Symlink("../shadow", filepath.Join(logs.dir, "out")),
		unix.Mkfifo(filepath.Join(logs.dir, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"syslog": "line", "latest": "line", "out": "", "fifo": "", "nothing": "", "pods/../../shadow": ""} {
		got, err := fs.ReadFile(logs, name)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if entries, err := fs.ReadDir(logs, "pods"); err != nil || len(entries) != 0 {
		t.Errorf("pods: %v, %v", entries, err)
	}
}

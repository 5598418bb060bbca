package endpoint

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podd/cmd/podd/internal/config"
	"podd/server/pki"
)

// TestKubeletTLS checks that the kubelet API uses the configured TLS version, ciphers, curves and
// certificate, and that it reloads a changed certificate.
func TestKubeletTLS(t *testing.T) {
	const aes256, aes128 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
	for name, c := range map[string]struct {
		min, cipher, curves string // configured
		client              *tls.Config
		want                string // the negotiated version; "" if the handshake must fail
	}{
		"default":              {client: &tls.Config{}, want: "TLS 1.3"},
		"TLS 1.2":              {client: &tls.Config{MaxVersion: tls.VersionTLS12}, want: "TLS 1.2"},
		"TLS 1.1":              {client: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		"TLS 1.2, minimum 1.3": {min: "VersionTLS13", client: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"TLS 1.3, minimum 1.3": {min: "VersionTLS13", client: &tls.Config{}, want: "TLS 1.3"},
		"configured cipher":    {cipher: aes256, client: &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}, want: "TLS 1.2"},
		"other cipher":         {cipher: aes128, client: &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}}},
		"configured curve":     {curves: "[23, 29]", client: &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256}}, want: "TLS 1.3"},
		"other curve":          {curves: "[29]", client: &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256}}},
	} {
		t.Run(name, func(t *testing.T) {
			files := &certFiles{t: t, dir: t.TempDir()}
			files.write("first")
			flags := config.Flags{APIFlags: config.APIFlags{TLSCertFile: new(files.path("crt")), TLSPrivateKeyFile: new(files.path("key"))}}
			if c.cipher != "" {
				flags.TLSCipherSuites = []string{c.cipher}
			}
			if c.curves != "" { // curves have no flag, only a field of the configuration file
				file := filepath.Join(files.dir, "config.yaml")
				text := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ntlsCurvePreferences: " + c.curves + "\n"
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				flags.Config = file
			}
			flags.TLSMinVersion = new(cmp.Or(c.min, "VersionTLS12"))
			conf := newKubeletTLS(t, flags)
			version, certName := handshake(conf, c.client)
			if version != c.want || (certName == "first") != (c.want != "") {
				t.Fatalf("got version %q, certificate for %q; want version %q, certificate for \"first\" (both \"\" if the handshake must fail)", version, certName, c.want)
			}
			files.write("second")
			if _, certName = handshake(conf, c.client); (certName == "second") != (c.want != "") {
				t.Errorf("after the certificate changed: got certificate for %q, want \"second\" (\"\" if the handshake must fail)", certName)
			}
		})
	}
}

// newKubeletTLS returns the TLS settings of the kubelet API for flags.
func newKubeletTLS(t *testing.T, flags config.Flags) *tls.Config {
	t.Helper()
	root := t.TempDir()
	flags.RootDir, flags.RunDir, flags.PodManifestPath = root, filepath.Join(root, "run"), []string{root}
	cfg, _, err := config.Load(flags, config.HostFacts{Program: "podd", Hostname: "n1", UsesCgroupV2: true})
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Node: "n1", PKI: newAuthority(t), Server: cfg.Server, Log: slog.New(slog.DiscardHandler)}
	certificate, err := o.newCertificateFunc()
	if err != nil {
		t.Fatal(err)
	}
	return kubeletTLS(cfg.API, certificate)
}

// handshake returns the negotiated version and the name in the server's certificate. Both are "" if the
// handshake fails.
func handshake(server, client *tls.Config) (version, certName string) {
	clientConn, serverConn := net.Pipe()
	defer clientConn.Close()
	defer serverConn.Close()
	go tls.Server(serverConn, server).Handshake()
	client = client.Clone()
	client.InsecureSkipVerify = true
	conn := tls.Client(clientConn, client)
	if conn.Handshake() != nil {
		return "", ""
	}
	state := conn.ConnectionState()
	return tls.VersionName(state.Version), state.PeerCertificates[0].Subject.CommonName
}

// certFiles are the files of a certificate (crt) and its key (key) in dir.
type certFiles struct {
	t   *testing.T
	dir string
}

func (f *certFiles) path(name string) string { return filepath.Join(f.dir, name) }

// write replaces both files by a new certificate for the given name and its key.
func (f *certFiles) write(name string) {
	f.t.Helper()
	ca, err := pki.Open(f.t.TempDir())
	if err != nil {
		f.t.Fatal(err)
	}
	cert, key, err := ca.SignClient(name, nil, time.Hour)
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

// TestSystemLogs checks that clients can read regular files, also through a link in the directory of the
// logs, but neither FIFOs nor files outside this directory.
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
			t.Errorf("%s: got content %q, error %v; want %q", name, got, err, want)
		}
	}
	if entries, err := fs.ReadDir(logs, "pods"); err != nil || len(entries) != 0 {
		t.Errorf("empty directory pods: got entries %v, error %v; want none", entries, err)
	}
}

// TestSystemLogs_Swapped checks that podd does not open a FIFO, even if a container replaces a regular
// file with the FIFO at any moment. The test detects that podd has opened the FIFO, because a writer that
// waits for a reader of the FIFO then continues.
func TestSystemLogs_Swapped(t *testing.T) {
	logs := systemLogs{t.TempDir()}
	name, fifo := filepath.Join(logs.dir, "name"), filepath.Join(logs.dir, "fifo")
	for _, err := range []error{os.WriteFile(name, []byte("line"), 0o600), unix.Mkfifo(fifo, 0o600), os.Link(fifo, fifo+"2")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var stop, opened atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for !stop.Load() {
			if err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, fifo, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	done.Go(func() {
		f, err := os.OpenFile(fifo+"2", os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		opened.Store(!stop.Load())
		f.Close()
	})
	reads := 0
	for n := 0; n < 20_000 || reads == 0 && n < 20_000_000; n++ { // on a busy machine, the FIFO may have the name for a long time
		text, err := fs.ReadFile(logs, "name")
		switch {
		case err == nil && string(text) == "line":
			reads++
		case err == nil || !errors.Is(err, fs.ErrNotExist):
			t.Errorf("got content %q, error %v; want the content of the regular file, or fs.ErrNotExist", text, err)
		}
		if opened.Load() || t.Failed() {
			break
		}
	}
	stop.Store(true)
	if f, err := os.OpenFile(fifo+"2", os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil { // unblocks the writer
		t.Error(err)
	} else {
		defer f.Close()
	}
	done.Wait()
	switch {
	case opened.Load():
		t.Error("podd opened the FIFO, want only the regular file to be opened")
	case reads == 0 && !t.Failed():
		t.Error("got no content of the regular file, want it at least once")
	}
}

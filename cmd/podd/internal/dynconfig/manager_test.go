package dynconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"podd/cmd/podd/internal/config"
)

const trialPeriod = 10 * time.Minute

// A node runs a manager with fake parts of podd. The name of a configuration is its value of maxPods.
type node struct {
	t       *testing.T
	flags   config.Flags
	link    *Link
	cancel  context.CancelFunc
	done    chan error
	running int32 // maxPods of the running parts, or 0
	starts  int
	warned  []string               // the first words of the warnings about the configuration, at each start
	causes  []error                // why the parts have stopped
	health  atomic.Pointer[Health] // the manager reads it in another goroutine
	failing map[int32]error        // errors with which the parts stop, by maxPods
	broken  atomic.Int32           // maxPods with which the parts have the health whenBroken
	notices []Notice

	whenBroken Health
}

// newNode returns a node whose configuration file sets maxPods to 1. It must be called in a bubble of
// synctest.
func newNode(t *testing.T) *node {
	dir := t.TempDir()
	n := &node{t: t, failing: map[int32]error{}}
	n.health.Store(&Health{Runtime: true})
	n.flags = config.Flags{FileFlags: config.FileFlags{Config: filepath.Join(dir, "config.yaml"), ConfigDir: filepath.Join(dir, "conf.d"), DynamicConfigDir: filepath.Join(dir, "dynamic"), DynamicConfigTrial: trialPeriod}}
	n.flags.RootDir, n.flags.RunDir = filepath.Join(dir, "root"), filepath.Join(dir, "run")
	n.flags.PullOffline = "strict"
	if err := os.Mkdir(n.flags.ConfigDir, 0o700); err != nil {
		t.Fatal(err)
	}
	n.write("maxPods: 1")
	return n
}

// write replaces the configuration file.
func (n *node) write(fields string) { n.writeFile(n.flags.Config, fields) }

func (n *node) writeFile(path, fields string) {
	n.t.Helper()
	if err := os.WriteFile(path, []byte(document(fields)), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// document returns a configuration with these fields.
func document(fields string) string {
	return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields + "\n"
}

// start starts the manager. The manager does not use inotify, because a bubble of synctest cannot wait for
// the kernel.
func (n *node) start() {
	n.t.Helper()
	store, err := openStore(n.flags.DynamicConfigDir)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	n.cancel, n.done = cancel, make(chan error, 1)
	m := newManager(Options{Flags: n.flags, Version: "v1", Start: n.run}, store)
	m.watcher.New = func() (*fsnotify.Watcher, error) { return nil, errors.New("no inotify in this test") }
	n.link = m.link
	go func() {
		err := m.run(ctx)
		store.close()
		n.done <- err
	}()
	synctest.Wait()
	n.collect()
}

// run is Options.Start.
func (n *node) run(ctx context.Context, cfg *config.Config, warnings []config.Warning, link *Link) error {
	n.starts++
	var texts []string
	for _, w := range warnings {
		texts = append(texts, strings.Fields(w.Message)[0])
	}
	n.warned = append(n.warned, strings.Join(texts, " "))
	n.running = int32(cfg.MaxPods)
	defer func() { n.running = 0 }()
	if err := n.failing[n.running]; err != nil {
		return err
	}
	link.SetHealth(func() Health {
		if int32(cfg.MaxPods) == n.broken.Load() {
			return n.whenBroken
		}
		return *n.health.Load()
	})
	defer link.SetHealth(nil)
	<-ctx.Done()
	n.causes = append(n.causes, context.Cause(ctx))
	return nil
}

// wait lets some time pass.
func (n *node) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	n.collect()
}

func (n *node) collect() { n.notices = append(n.notices, n.link.TakeNotices()...) }

// stop stops the manager in an orderly way.
func (n *node) stop() {
	n.t.Helper()
	n.cancel()
	if err := <-n.done; err != nil {
		n.t.Errorf("error of Run: got %v, want nil", err)
	}
}

// crash stops the manager and restores its files as they were before, as after a crash of the process.
func (n *node) crash() {
	n.t.Helper()
	path := filepath.Join(n.flags.DynamicConfigDir, stateFile)
	data, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	n.stop()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// wantRunning checks which configuration the parts use, and the error in the status. If the error is "",
// there must be none.
func (n *node) wantRunning(maxPods int32, errorPart string) {
	n.t.Helper()
	if n.running != maxPods {
		n.t.Errorf("maxPods of the running parts: got %d, want %d", n.running, maxPods)
	}
	status, _ := n.link.Status()
	if errorPart == "" && status.Error != "" || !strings.Contains(status.Error, errorPart) {
		n.t.Errorf("error in the status: got %q, want %q in it", status.Error, errorPart)
	}
}

// wantTrial checks whether the configuration in use is on trial.
func (n *node) wantTrial(want bool) {
	n.t.Helper()
	if status, _ := n.link.Status(); status.IsOnTrial != want {
		n.t.Errorf("configuration is on trial: got %t, want %t", status.IsOnTrial, want)
	}
}

// wantNotices checks the reasons of the notices since the last call.
func (n *node) wantNotices(want ...string) {
	n.t.Helper()
	var got []string
	for _, notice := range n.notices {
		got = append(got, notice.Reason)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		n.t.Errorf("reasons of the notices (-want +got):\n%s", diff)
	}
	n.notices = nil
}

// startTrusted starts a node whose first configuration has passed its trial.
func startTrusted(t *testing.T) *node {
	n := newNode(t)
	n.trust()
	return n
}

// trust starts the node and waits until its first configuration has passed its trial.
func (n *node) trust() {
	n.t.Helper()
	n.start()
	n.wantTrial(true)
	n.wait(trialPeriod + checkInterval)
	n.wantRunning(1, "")
	n.wantTrial(false)
	n.wantNotices("KubeletConfigChanged", "KubeletConfigAccepted")
}

// TestManager_Accepts checks that a changed file and a new drop-in take effect without a restart of the
// process, and pass their trials.
func TestManager_Accepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		defer n.stop()
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.wantRunning(2, "")
		n.wantTrial(true)
		n.wait(trialPeriod + time.Second)
		n.wantTrial(false)
		n.writeFile(filepath.Join(n.flags.ConfigDir, "10.conf"), "maxPods: 3")
		n.wait(checkInterval)
		n.wantRunning(3, "")
		n.wantNotices("KubeletConfigChanged", "KubeletConfigAccepted", "KubeletConfigChanged")
		if n.starts != 3 {
			t.Errorf("number of starts: got %d, want 3", n.starts)
		}
		for _, cause := range n.causes {
			if !errors.Is(cause, ErrReload) {
				t.Errorf("cause of the end of the parts: got %v, want %v", cause, ErrReload)
			}
		}
	})
}

// TestManager_Invalid checks that an invalid file changes nothing, also after a restart, and that podd does
// not start with it if there is no other configuration.
func TestManager_Invalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.write("maxPods: many")
		n.wait(2 * checkInterval)
		n.wantRunning(1, "config.yaml:3:1: error: maxPods: ")
		n.stop()
		n.start()
		n.wantRunning(1, "config.yaml:3:1: error: maxPods: ")
		if err := os.Remove(n.flags.Config); err != nil {
			t.Fatal(err)
		}
		n.wait(checkInterval)
		n.wantRunning(1, "no such file or directory")
		n.write("maxPods: 1")
		n.wait(checkInterval)
		n.wantRunning(1, "")
		n.wantNotices("KubeletConfigRejected", "KubeletConfigRejected", "KubeletConfigNotRead", "KubeletConfigChanged")
		if n.starts != 2 {
			t.Errorf("number of starts: got %d, want 2", n.starts)
		}
		n.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.write("maxPods: many")
		n.start()
		if err := <-n.done; err == nil || !strings.Contains(err.Error(), "maxPods: ") {
			t.Errorf("error of the first start: got %v, want one about maxPods", err)
		}
	})
}

// TestManager_Fails checks that podd returns to the last known good configuration if its parts stop with an
// error, and does not try the rejected configuration again after a restart.
func TestManager_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.failing[2] = errors.New("the port is in use")
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.wantRunning(1, "was rejected: podd failed: the port is in use")
		n.wait(trialPeriod + checkInterval)
		n.stop()
		n.start()
		n.wantRunning(1, "was rejected: podd failed: the port is in use")
		n.wantNotices("KubeletConfigChanged", "KubeletConfigRejected", "KubeletConfigRejected") // the last one after the restart
		if n.starts != 4 {
			t.Errorf("number of starts: got %d, want 4", n.starts)
		}
		delete(n.failing, 2)
		n.write("maxPods: 2 # the port is free now")
		n.wait(checkInterval)
		n.wantRunning(2, "")
		n.stop()
	})
}

// TestManager_Crashes checks that podd returns to the last known good configuration if its process crashes
// again and again, and that orderly stops do not count.
func TestManager_Crashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.write("maxPods: 2")
		n.wait(checkInterval)
		for range 2 * maxStarts {
			n.stop()
			n.start()
			n.wantRunning(2, "")
		}
		for range maxStarts - 1 {
			n.crash()
			n.start()
			n.wantRunning(2, "")
		}
		n.crash()
		n.start()
		n.wantRunning(1, "was rejected: podd crashed 3 times")
		n.stop()
	})
}

// TestManager_Unreachable checks that podd returns to the last known good configuration if a peer becomes
// unreachable, unless the peer was unreachable before or becomes reachable again soon.
func TestManager_Unreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		defer n.stop()
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.health.Store(&Health{})
		n.wait(maxLostTime - 5*time.Second)
		n.wantRunning(2, "")
		n.health.Store(&Health{Runtime: true})
		n.wait(5 * time.Second)
		n.health.Store(&Health{})
		n.wait(maxLostTime - 5*time.Second)
		n.wantRunning(2, "")
		n.wait(10 * time.Second)
		n.wantRunning(1, "ended, because the container runtime was unreachable for 1m0s, and was reachable before")

		n.wait(2 * maxLostTime)
		n.write("maxPods: 3") // the runtime is unreachable before this change
		n.wait(2*trialPeriod + checkInterval)
		n.wantRunning(3, "")
		n.wantTrial(true)
		n.health.Store(&Health{Runtime: true, HasCluster: true})
		n.wait(checkInterval)
		n.wantTrial(true)
		n.health.Store(&Health{Runtime: true, HasCluster: true, APIServer: true})
		n.wait(checkInterval)
		n.wantTrial(false)
		n.write("maxPods: 4")
		n.wait(checkInterval)
		n.health.Store(&Health{Runtime: true, HasCluster: true})
		n.wait(2 * maxLostTime)
		n.wantRunning(3, "ended, because the API server was unreachable for 1m0s, and was reachable before")
	})
}

var (
	online = Health{Runtime: true, HasCluster: true, APIServer: true}
	outage = Health{Runtime: true, HasCluster: true}
)

// startTrustedInCluster starts a node of a cluster whose first configuration has passed its trial.
func startTrustedInCluster(t *testing.T) *node {
	n := newNode(t)
	n.health.Store(&online)
	n.trust()
	return n
}

// TestManager_Outage checks that an outage of the API server ends a trial, but that podd tries the
// configuration again when the API server responds, also after a crash and if the outage ends soon after
// the trial.
func TestManager_Outage(t *testing.T) {
	for name, test := range map[string]struct {
		length  time.Duration // from the beginning of the trial
		crashes bool
	}{
		"a long outage":               {length: time.Hour},
		"a long outage and a crash":   {length: time.Hour, crashes: true},
		"an upgrade of a few minutes": {length: maxLostTime + maxLostTime/2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startTrustedInCluster(t)
				n.write("maxPods: 2")
				n.wait(checkInterval)
				n.wantRunning(2, "")
				n.health.Store(&outage)
				n.wait(maxLostTime + 2*time.Second)
				n.wantRunning(1, "the trial of the configuration in the files ended, because the API server was unreachable for 1m0s, and was reachable before; podd tries the configuration again after the outage")
				n.wantTrial(false)
				n.wantNotices("KubeletConfigChanged", "KubeletConfigPostponed")
				n.wait(test.length - maxLostTime)
				n.wantRunning(1, "ended, because the API server was unreachable")
				if files, err := os.ReadDir(filepath.Join(n.flags.DynamicConfigDir, checkpointDir)); err != nil || len(files) != 1 {
					t.Errorf("checkpoints while podd waits: got %d, error %v, want 1", len(files), err)
				}
				if test.crashes {
					n.crash()
					n.start()
					n.wantRunning(1, "ended, because the API server was unreachable")
					n.wantNotices("KubeletConfigPostponed")
				}
				n.health.Store(&online)
				n.wait(maxLostTime - 5*time.Second)
				n.wantRunning(1, "ended, because the API server was unreachable")
				n.wait(10 * time.Second)
				n.wantRunning(2, "")
				n.wantTrial(true)
				n.wait(trialPeriod + checkInterval)
				n.wantRunning(2, "")
				n.wantTrial(false)
				n.wantNotices("KubeletConfigChanged", "KubeletConfigAccepted")
				n.stop()
			})
		})
	}
}

// TestManager_OutageAtStart checks that podd tries a configuration again if podd was restarted during an
// outage of the API server, for example after a power cut, and the trial then ended.
func TestManager_OutageAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrustedInCluster(t)
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.crash()
		n.health.Store(&outage)
		n.start()
		n.wait(trialPeriod - 5*time.Second) // the API server may be starting
		n.wantRunning(2, "")
		n.wait(10 * time.Second)
		n.wantRunning(1, "ended, because the API server was unreachable for 10m0s, and was reachable before")
		n.wait(time.Hour)
		n.health.Store(&online)
		n.wait(maxLostTime + trialPeriod + checkInterval)
		n.wantRunning(2, "")
		n.wantTrial(false)
		n.stop()
	})
}

// TestManager_LeftClusterDuringOutage checks that podd also tries the configuration again if it is started
// without --kubeconfig.
func TestManager_LeftClusterDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrustedInCluster(t)
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.health.Store(&outage)
		n.wait(maxLostTime + 2*time.Second)
		n.wantRunning(1, "ended, because the API server was unreachable")
		n.stop()
		n.health.Store(&Health{Runtime: true})
		n.start()
		n.wait(maxLostTime + trialPeriod + checkInterval)
		n.wantRunning(2, "")
		n.wantTrial(false)
		n.stop()
	})
}

// TestManager_BreaksConnection checks that podd rejects a configuration for good if a peer responds with the
// last known good configuration, but not with this one.
func TestManager_BreaksConnection(t *testing.T) {
	for peer, health := range map[string]Health{"the API server": outage, "the container runtime": {HasCluster: true, APIServer: true}} {
		t.Run(peer, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startTrustedInCluster(t)
				n.whenBroken = health
				n.broken.Store(2)
				n.write("maxPods: 2")
				n.wait(checkInterval)
				n.wait(maxLostTime + 2*time.Second)
				n.wantRunning(1, "ended, because "+peer+" was unreachable")
				n.wait(maxLostTime + 2*time.Second)
				n.wantRunning(2, "")
				n.wait(maxLostTime + 2*time.Second)
				n.wantRunning(1, "ended, because "+peer+" was unreachable")
				n.wait(maxLostTime + 2*time.Second)
				n.wantRunning(1, "was rejected: "+peer+" was unreachable for 1m0s, and was reachable before, in 2 trials")
				starts := n.starts
				n.wait(24 * time.Hour)
				n.wantRunning(1, "was rejected: ")
				if n.starts != starts {
					t.Errorf("number of starts a day later: got %d, want %d", n.starts, starts)
				}
				n.wantNotices("KubeletConfigChanged", "KubeletConfigPostponed", "KubeletConfigChanged", "KubeletConfigPostponed", "KubeletConfigRejected")
				n.stop()
			})
		})
	}
}

// TestManager_ManyOutages checks that the number of trials is limited, even if the API server is also
// unreachable with the last known good configuration after each of them.
func TestManager_ManyOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrustedInCluster(t)
		n.write("maxPods: 2")
		n.wait(checkInterval)
		for range maxLosses {
			n.wantRunning(2, "")
			n.health.Store(&outage)
			n.wait(3 * maxLostTime)
			n.wantRunning(1, "ended, because the API server was unreachable")
			n.health.Store(&online)
			n.wait(maxLostTime + 2*time.Second)
		}
		n.wantRunning(1, fmt.Sprintf("was rejected: the API server was unreachable for 1m0s, and was reachable before, in %d trials", maxLosses))
		n.stop()
	})
}

// TestManager_ChangedDuringOutage checks that podd uses another configuration during an outage that has
// ended a trial, and no longer waits if the change is undone or becomes invalid.
func TestManager_ChangedDuringOutage(t *testing.T) {
	for name, test := range map[string]struct {
		fields  string
		running int32
		err     string
		after   int32 // maxPods after the outage
	}{
		"another change":    {"maxPods: 3", 3, "", 3},
		"an undone change":  {"maxPods: 1", 1, "", 1},
		"an invalid change": {"maxPods: many", 1, "was rejected: ", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startTrustedInCluster(t)
				n.write("maxPods: 2")
				n.wait(checkInterval)
				n.health.Store(&outage)
				n.wait(maxLostTime + 2*time.Second)
				n.wantRunning(1, "ended, because the API server was unreachable")
				n.write(test.fields)
				n.wait(checkInterval)
				n.wantRunning(test.running, test.err)
				n.health.Store(&online)
				n.wait(maxLostTime + checkInterval)
				n.wantRunning(test.after, test.err)
				n.stop()
			})
		})
	}
}

// TestManager_ConfigMap checks that the content of a ConfigMap replaces that of the file, also after a
// restart without an API server, and that the file applies again when the Node names no ConfigMap.
func TestManager_ConfigMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.flags.Kubeconfig = "/kubeconfig"
		n.trust()
		n.link.SetConfigMap(nil, "")
		n.wait(checkInterval)
		n.wantRunning(1, "")
		n.link.SetConfigMap(nil, "ConfigMap kube-system/podd not found")
		n.wait(time.Second)
		n.wantRunning(1, "ConfigMap kube-system/podd not found")
		cm := &ConfigMap{Version: ConfigMapVersion{Namespace: "kube-system", Name: "podd", Key: "kubelet", UID: "u", ResourceVersion: "1"}, Data: document("maxPods: 5")}
		n.link.SetConfigMap(cm, "")
		n.wait(time.Second)
		n.wantRunning(5, "")
		if status, _ := n.link.Status(); status.Active.String() != "the configuration in ConfigMap kube-system/podd (sha256:"+status.Active.Digest[:12]+")" {
			t.Errorf("configuration in use: got %s, want the ConfigMap", status.Active)
		}
		n.writeFile(filepath.Join(n.flags.ConfigDir, "10.conf"), "maxPods: 6")
		n.wait(checkInterval)
		n.wantRunning(6, "")
		n.stop()
		n.start()
		n.wantRunning(6, "")
		broken := *cm
		broken.Data = "maxPods"
		n.link.SetConfigMap(&broken, "")
		n.wait(time.Second)
		n.wantRunning(6, "ConfigMap kube-system/podd[kubelet]:1:1: error: ")
		n.link.SetConfigMap(cm, "")
		n.wait(time.Second)
		n.stop()
		kubeconfig := n.flags.Kubeconfig
		n.flags.Kubeconfig = "" // without a cluster, the stored ConfigMap does not apply
		if err := os.Remove(filepath.Join(n.flags.ConfigDir, "10.conf")); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.wantRunning(1, "")
		n.stop()
		n.flags.Kubeconfig = kubeconfig
		n.start()
		n.wantRunning(5, "")
		n.link.SetConfigMap(nil, "")
		if err := os.WriteFile(filepath.Join(n.flags.ConfigDir, "11.conf"), []byte(document("maxPods: 1")), 0o600); err != nil {
			t.Fatal(err)
		}
		n.wait(checkInterval)
		n.wantRunning(1, "")
		n.stop()
		n.start()
		n.wantRunning(1, "")
		n.stop()
	})
}

// TestManager_ChangedWhileStopped checks that the trial of a configuration that changed while podd was
// stopped ends if the runtime does not respond, although podd does not know whether it would have responded.
// podd must try the configuration again when the runtime responds.
func TestManager_ChangedWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.stop()
		n.write("maxPods: 2")
		n.health.Store(&Health{})
		n.start()
		n.wait(trialPeriod - 5*time.Second) // the runtime may be starting
		n.wantRunning(2, "")
		n.wait(10 * time.Second)
		n.wantRunning(1, "ended, because the container runtime was unreachable for 10m0s, and was reachable before")
		n.health.Store(&Health{Runtime: true})
		n.wait(maxLostTime + trialPeriod + checkInterval)
		n.wantRunning(2, "")
		n.wantTrial(false)
		n.stop()
	})
}

// TestManager_LeftCluster checks that a configuration that changed while podd was stopped passes its trial
// if podd is started without --kubeconfig, because there is no API server that could respond.
func TestManager_LeftCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.health.Store(&Health{Runtime: true, HasCluster: true, APIServer: true})
		n.trust()
		n.stop()
		n.write("maxPods: 2")
		n.health.Store(&Health{Runtime: true})
		n.start()
		n.wait(trialPeriod + checkInterval)
		n.wantRunning(2, "")
		n.wantTrial(false)
		n.stop()
	})
}

// TestManager_LongRuns checks that crashes after long runs do not end a trial that waits for the API
// server.
func TestManager_LongRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.write("maxPods: 2")
		n.health.Store(&Health{Runtime: true, HasCluster: true})
		for range 2 * maxStarts {
			n.wait(trialPeriod + checkInterval)
			n.crash()
			n.start()
			n.wantRunning(2, "")
		}
		n.stop()
	})
}

// TestManager_UnreadableFile checks that podd remembers a rejected configuration while its file cannot be
// read.
func TestManager_UnreadableFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.failing[2] = errors.New("the port is in use")
		n.write("maxPods: 2")
		n.wait(checkInterval)
		starts := n.starts
		if err := os.Rename(n.flags.Config, n.flags.Config+".old"); err != nil {
			t.Fatal(err)
		}
		n.wait(checkInterval)
		n.wantRunning(1, "no such file or directory")
		if err := os.Rename(n.flags.Config+".old", n.flags.Config); err != nil {
			t.Fatal(err)
		}
		n.wait(checkInterval)
		n.wantRunning(1, "was rejected: podd failed: the port is in use")
		if n.starts != starts {
			t.Errorf("number of starts: got %d, want %d", n.starts, starts)
		}
		n.stop()
	})
}

// TestManager_HugeError checks that a configuration with thousands of errors does not prevent the next
// start.
func TestManager_HugeError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		var b strings.Builder
		b.WriteString("evictionHard:\n")
		for i := range 20000 {
			fmt.Fprintf(&b, "  wrong%d: 1\n", i)
		}
		n.write(b.String())
		n.wait(checkInterval)
		n.wantRunning(1, "was rejected: ")
		n.stop()
		n.start()
		n.wantRunning(1, "was rejected: ")
		n.wantTrial(false)
		n.stop()
	})
}

// TestManager_CannotUse checks that podd keeps the last known good configuration if it cannot be used at
// a start, and that a missing checkpoint does not matter if the files are valid.
func TestManager_CannotUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.stop()
		n.flags.RunOnce = new(true)
		n.start()
		if err := <-n.done; err == nil || !strings.Contains(err.Error(), "runOnce cannot be used") {
			t.Errorf("error of a start with runOnce: got %v", err)
		}
		n.flags.RunOnce = nil
		n.start()
		n.wantRunning(1, "")
		n.wantTrial(false)
		n.stop()
		if err := os.RemoveAll(filepath.Join(n.flags.DynamicConfigDir, checkpointDir)); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.wantRunning(1, "")
		n.wantTrial(false)
		n.stop()
		n.write("maxPods: many")
		n.start()
		n.wantRunning(1, "maxPods: ")
		n.stop()
	})
}

// TestManager_StateNotStored checks that no trial begins while its state cannot be stored, because podd
// could not count its crashes, and that a trial of an earlier process ends.
func TestManager_StateNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		path := filepath.Join(n.flags.DynamicConfigDir, stateFile)
		stored, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		n.write("maxPods: 2")
		n.wait(3 * checkInterval)
		n.wantRunning(1, "storing the configuration: ")
		n.wantNotices("KubeletConfigNotStored")
		if err := errors.Join(os.Remove(path), os.WriteFile(path, stored, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.wait(checkInterval)
		n.wantRunning(2, "")
		n.stop()
	})
}

// TestManager_DirectoryDeleted checks that podd stores its state again and locks the directory again if a
// user deletes the directory, and can still return to the last known good configuration.
func TestManager_DirectoryDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		if err := os.RemoveAll(n.flags.DynamicConfigDir); err != nil {
			t.Fatal(err)
		}
		n.failing[2] = errors.New("the port is in use")
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.wantRunning(1, "was rejected: podd failed: the port is in use")
		n.wantNotices("KubeletConfigLost", "KubeletConfigChanged", "KubeletConfigRejected")
		if _, err := openStore(n.flags.DynamicConfigDir); err == nil || !strings.Contains(err.Error(), "in use by another podd") {
			t.Errorf("opening the directory: got error %v, want that it is in use", err)
		}
		n.stop()
		n.write("maxPods: many")
		n.start()
		n.wantRunning(1, "maxPods: ")
		n.stop()
	})
}

// TestManager_Undone checks that podd reports that it uses the last known good configuration again.
func TestManager_Undone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startTrusted(t)
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.write("maxPods: 1")
		n.wait(checkInterval)
		n.wantRunning(1, "")
		n.wantTrial(false)
		n.wantNotices("KubeletConfigChanged", "KubeletConfigChanged")
		n.stop()
	})
}

// TestCheckTimer checks that a check waits until the files have settled, but not forever.
func TestCheckTimer(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := newCheckTimer(start)
	if want := start.Add(checkInterval); c.at != want {
		t.Errorf("check without an event: got %s, want %s", c.at, want)
	}
	for _, step := range []struct{ at, want time.Duration }{{29900, 30900}, {30500, 31500}, {34000, 34900}, {34800, 34900}} {
		c.recordEvent(start.Add(step.at * time.Millisecond))
		if want := start.Add(step.want * time.Millisecond); c.at != want {
			t.Errorf("check after an event at %s: got %s, want %s", step.at*time.Millisecond, c.at.Sub(start), want.Sub(start))
		}
	}
}

// TestManager_DamagedFiles checks that damaged files in the directory do not keep podd from starting, and
// that a configuration whose checkpoint cannot be stored is not used until it can be stored.
func TestManager_DamagedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.flags.Kubeconfig = "/kubeconfig"
		n.trust()
		n.stop()
		for _, name := range []string{stateFile, configMapFile} {
			if err := os.WriteFile(filepath.Join(n.flags.DynamicConfigDir, name), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n.start()
		n.wantRunning(1, "")
		n.wantNotices("KubeletConfigLost", "KubeletConfigLost", "KubeletConfigChanged")
		checkpoints := filepath.Join(n.flags.DynamicConfigDir, checkpointDir)
		if err := errors.Join(os.RemoveAll(checkpoints), os.WriteFile(checkpoints, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.write("maxPods: 2")
		n.wait(checkInterval)
		n.wantRunning(1, "storing the configuration: ")
		if err := os.Remove(checkpoints); err != nil {
			t.Fatal(err)
		}
		n.wait(checkInterval)
		n.wantRunning(2, "")
		n.stop()
		n.write("maxPods: many")
		if err := os.RemoveAll(checkpoints); err != nil {
			t.Fatal(err)
		}
		n.start()
		if err := <-n.done; err == nil || !strings.Contains(err.Error(), "maxPods: ") {
			t.Errorf("error without a valid configuration and without checkpoints: got %v, want one about maxPods", err)
		}
	})
}

// TestOpenStore checks the mode of the directory and its files, and that a directory is used by one podd
// and cannot be changed by other users.
func TestOpenStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dynamic")
	s, err := openStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := errors.Join(s.writeState(State{}), s.writeCheckpoint(newCheckpoint(nil, nil)), s.writeConfigMap(&ConfigMap{})); err != nil {
		t.Fatal(err)
	}
	err = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("mode of %s: got %v, want no access for other users", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir); err == nil || !strings.Contains(err.Error(), "in use by another podd") {
		t.Errorf("opening a directory in use: got error %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(dir); err == nil || !strings.Contains(err.Error(), "chmod 0700") {
		t.Errorf("opening a directory that others can change: got error %v", err)
	}
}

// TestOneLine checks that a text with several lines becomes one sentence.
func TestOneLine(t *testing.T) {
	if got, want := oneLine("invalid, 2 errors:\na: wrong\n  b: wrong\n"), "invalid, 2 errors: a: wrong; b: wrong"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := oneLine(strings.Repeat("ä", 1000)); len(got) > maxReasonBytes+len("…") || !strings.HasSuffix(got, "ä…") {
		t.Errorf("long text: got %d bytes, %q at the end", len(got), got[len(got)-8:])
	}
}

// diffJSON returns the difference between two values as JSON, or "".
func diffJSON(t *testing.T, want, got any) string {
	t.Helper()
	encode := func(v any) string {
		data, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return cmp.Diff(encode(want), encode(got))
}

// TestManager_Warnings checks that the parts get the warnings about their configuration each time that they
// start, also after the return to an earlier configuration.
func TestManager_Warnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.failing[2] = errors.New("port in use")
		n.write("maxPods: 1\nhairpinMode: none")
		n.trust()
		n.write("maxPods: 2\nvolumePluginDir: /x")
		n.wait(2 * checkInterval)
		n.wantRunning(1, "port in use")
		n.stop()
		if diff := cmp.Diff([]string{"hairpinMode", "volumePluginDir", "hairpinMode"}, n.warned); diff != "" {
			t.Errorf("settings in the warnings at each start (-want +got):\n%s", diff)
		}
	})
}

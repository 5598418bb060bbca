package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	podRoundPause   = 500 * time.Millisecond  // between rounds of one pod
	burstRoundPause = 1500 * time.Millisecond // between rounds of many pods
)

// measureOnePod measures the time from writing a manifest until the pod's process runs.
func (b *bench) measureOnePod(ctx context.Context) error {
	r := row{name: "one pod: writing the manifest until running", unit: seconds, goal: goal{factor: 1.2}}
	for range b.Singles {
		took, err := b.timeBarePod(ctx)
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if took, err = b.timePoddPod(ctx); err != nil {
			return err
		}
		r.podd = append(r.podd, took.Seconds())
	}
	b.table.add(r)
	return nil
}

// timeBarePod starts a pod with bare CRI calls and removes it. It returns the time from the
// first call until the process runs.
func (b *bench) timeBarePod(ctx context.Context) (time.Duration, error) {
	pods := b.newPods(1)
	barePods, err := b.bareRunner.render(pods)
	if err != nil {
		return 0, err
	}
	startTime := time.Now()
	if err := b.bareRunner.start(ctx, barePods, 1); err != nil {
		return 0, err
	}
	at, err := b.starts.waitFor(ctx, podNames(pods), startTime)
	if err != nil {
		return 0, err
	}
	return at.Sub(startTime), b.removeBarePods(ctx, barePods, 1)
}

// removeBarePods removes pods that the bareRunner has started.
func (b *bench) removeBarePods(ctx context.Context, barePods []*barePod, concurrency int) error {
	if err := b.bareRunner.stop(ctx, barePods, concurrency); err != nil {
		return err
	}
	if err := b.bareRunner.remove(ctx, barePods, concurrency); err != nil {
		return err
	}
	return sleep(ctx, podRoundPause)
}

// timePoddPod lets an idle podd start a pod, and removes the pod. It returns the time from
// writing the manifest until the process runs.
func (b *bench) timePoddPod(ctx context.Context) (time.Duration, error) {
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return 0, err
	}
	pods := b.newPods(1)
	startTime, at, err := b.startPods(ctx, pods)
	if err != nil {
		return 0, err
	}
	if err := b.removePods(ctx, pods); err != nil {
		return 0, err
	}
	return at.Sub(startTime), b.daemon.stop()
}

// startPods writes the manifests of pods for podd. startTime is the time just before podd can observe
// the first manifest, and runTime the time at which all processes of the pods were running.
func (b *bench) startPods(ctx context.Context, pods []pod) (startTime, runTime time.Time, err error) {
	if err = b.daemon.stageManifests(pods); err != nil {
		return
	}
	startTime = time.Now()
	if err = b.daemon.publishManifests(pods); err != nil {
		return
	}
	runTime, err = b.starts.waitFor(ctx, podNames(pods), startTime)
	return
}

// removePods removes manifests and waits until podd has removed the pods.
func (b *bench) removePods(ctx context.Context, pods []pod) error {
	_, _, err := b.timeRemoval(ctx, pods)
	if err != nil {
		return err
	}
	return sleep(ctx, podRoundPause)
}

// timeRemoval removes the manifests of the running pods. taskTime is the time until no task exists,
// and totalTime is the time until everything is removed.
func (b *bench) timeRemoval(ctx context.Context, pods []pod) (taskTime, totalTime time.Duration, err error) {
	dirs, err := newDirDrainWaiter(b.daemon.podsDir())
	if err != nil {
		return 0, 0, err
	}
	defer dirs.close()
	startTime := time.Now()
	if err := b.daemon.removeManifests(pods); err != nil {
		return 0, 0, err
	}
	tasksRemoved, err := b.tasks.waitEmpty(ctx)
	if err != nil {
		return 0, 0, err
	}
	podsRemoved, err := dirs.waitEmpty(ctx)
	return tasksRemoved.Sub(startTime), podsRemoved.Sub(startTime), err
}

// measureStart measures the time from podd's start until a pod with an existing manifest runs. It
// compares this time with the start of one pod by bare CRI calls.
func (b *bench) measureStart(ctx context.Context) error {
	r := row{name: "one pod with an existing manifest: start of podd until running", unit: seconds, goal: goal{factor: 1, offset: 0.1}}
	for range b.Singles {
		took, err := b.timeBarePod(ctx)
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if took, err = b.timePoddStart(ctx); err != nil {
			return err
		}
		r.podd = append(r.podd, took.Seconds())
	}
	b.table.add(r)
	return nil
}

// timePoddStart writes a manifest and starts podd. It returns the time from podd's start until
// the pod's process runs.
func (b *bench) timePoddStart(ctx context.Context) (time.Duration, error) {
	pods := b.newPods(1)
	if err := b.daemon.stageManifests(pods); err != nil {
		return 0, err
	}
	if err := b.daemon.publishManifests(pods); err != nil {
		return 0, err
	}
	startTime, err := b.daemon.launch()
	if err != nil {
		return 0, err
	}
	at, err := b.starts.waitFor(ctx, podNames(pods), startTime)
	if err != nil {
		return 0, err
	}
	if err := b.removePods(ctx, pods); err != nil {
		return 0, err
	}
	return at.Sub(startTime), b.daemon.stop()
}

// measureRestart measures the time from killing a container's process until the next process runs.
// In the rounds with bare CRI calls, the next container is created right after the kill, whereas podd
// must first detect the exit.
func (b *bench) measureRestart(ctx context.Context) error {
	r := row{name: "one pod: kill of the container until running again", unit: seconds, goal: goal{offset: 0.2}}
	barePods, err := b.bareRunner.render(b.newPods(1))
	if err != nil {
		return err
	}
	if err := b.bareRunner.start(ctx, barePods, 1); err != nil {
		return err
	}
	pods := b.newPods(b.Singles)
	if err := b.daemon.startAndSettle(ctx); err != nil {
		return err
	}
	if _, _, err := b.startPods(ctx, pods); err != nil {
		return err
	}
	for _, p := range pods {
		if err := b.daemon.stop(); err != nil {
			return err
		}
		took, err := b.timeRestart(ctx, barePods[0].pod.Key.Name, manifestName(barePods[0]), func() error { return b.bareRunner.startContainer(ctx, barePods[0]) })
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if err := b.daemon.startAndSettle(ctx); err != nil {
			return err
		}
		if took, err = b.timeRestart(ctx, p.name+"-"+nodeName, p.name, func() error { return nil }); err != nil {
			return err
		}
		r.podd = append(r.podd, took.Seconds())
	}
	b.table.add(r)
	if err := b.removeBarePods(ctx, barePods, 1); err != nil {
		return err
	}
	if err := b.removePods(ctx, pods); err != nil {
		return err
	}
	return b.daemon.stop()
}

// manifestName returns the name of a pod in its manifest, without the node name.
func manifestName(p *barePod) string {
	return p.pod.Key.Name[:len(p.pod.Key.Name)-len(p.pod.NameSuffix)]
}

// timeRestart kills the process of a pod's container, and then calls restartContainer. It returns
// the time from the kill until the next process of the pod runs. The parameter key is the pod's
// name in the runtime, and the parameter name is the pod's name in the manifest.
func (b *bench) timeRestart(ctx context.Context, key, name string, restartContainer func() error) (time.Duration, error) {
	id, err := b.bareRunner.containerID(ctx, key)
	if err != nil {
		return 0, err
	}
	pid, err := b.tasks.readPID(id)
	if err != nil {
		return 0, err
	}
	startTime := time.Now()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return 0, err
	}
	if err := restartContainer(); err != nil {
		return 0, err
	}
	at, err := b.starts.waitFor(ctx, []string{name}, startTime)
	if err != nil {
		return 0, err
	}
	return at.Sub(startTime), sleep(ctx, podRoundPause)
}

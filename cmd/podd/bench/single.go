package main

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pause  = 500 * time.Millisecond  // between rounds of one pod
	breath = 1500 * time.Millisecond // between rounds of many pods
)

// one measures the time from writing a manifest until the pod's process runs.
func (b *bench) one(ctx context.Context) error {
	r := row{name: "one pod, written -> runs", unit: seconds, goal: goal{factor: 1.2}}
	for range b.Singles {
		took, err := b.oneBare(ctx)
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if took, err = b.onePodd(ctx); err != nil {
			return err
		}
		r.podd = append(r.podd, took.Seconds())
	}
	b.table.add(r)
	return nil
}

// oneBare starts a pod with bare CRI calls and removes it.
func (b *bench) oneBare(ctx context.Context) (time.Duration, error) {
	pods := b.pods(1)
	bares, err := b.floor.render(pods)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := b.floor.run(ctx, bares, 1); err != nil {
		return 0, err
	}
	at, err := b.started.all(ctx, names(pods), begin)
	if err != nil {
		return 0, err
	}
	return at.Sub(begin), b.clear(ctx, bares, 1)
}

// clear removes pods of the floor.
func (b *bench) clear(ctx context.Context, bares []*barePod, width int) error {
	if err := b.floor.stop(ctx, bares, width); err != nil {
		return err
	}
	if err := b.floor.remove(ctx, bares, width); err != nil {
		return err
	}
	return rest(ctx, pause)
}

// onePodd lets an idle podd start a pod, and removes the pod.
func (b *bench) onePodd(ctx context.Context) (time.Duration, error) {
	if err := b.daemon.begin(ctx); err != nil {
		return 0, err
	}
	pods := b.pods(1)
	began, at, err := b.apply(ctx, pods)
	if err != nil {
		return 0, err
	}
	if err := b.withdraw(ctx, pods); err != nil {
		return 0, err
	}
	return at.Sub(began), b.daemon.end()
}

// apply writes manifests for podd. It returns the time before that and the time when all
// processes were running.
func (b *bench) apply(ctx context.Context, pods []pod) (began, at time.Time, err error) {
	if err = b.daemon.stage(pods); err != nil {
		return
	}
	began = time.Now()
	if err = b.daemon.write(pods); err != nil {
		return
	}
	at, err = b.started.all(ctx, names(pods), began)
	return
}

// withdraw removes manifests and waits until podd has removed the pods.
func (b *bench) withdraw(ctx context.Context, pods []pod) error {
	_, _, err := b.end(ctx, pods)
	if err != nil {
		return err
	}
	return rest(ctx, pause)
}

// end removes the manifests of all of podd's pods. It returns the times until no task, and
// nothing at all, was left.
func (b *bench) end(ctx context.Context, pods []pod) (tasks, all time.Duration, err error) {
	dirs, err := watchEmptiness(b.daemon.pods())
	if err != nil {
		return 0, 0, err
	}
	defer dirs.close()
	begin := time.Now()
	if err := b.daemon.remove(pods); err != nil {
		return 0, 0, err
	}
	noTasks, err := b.tasks.wait(ctx)
	if err != nil {
		return 0, 0, err
	}
	nothing, err := dirs.wait(ctx)
	return noTasks.Sub(begin), nothing.Sub(begin), err
}

// start measures the time from podd's start until a pod runs whose manifest already exists,
// compared with one pod by bare CRI calls.
func (b *bench) start(ctx context.Context) error {
	r := row{name: "podd started -> a waiting pod runs", unit: seconds, goal: goal{factor: 1, plus: 0.1}}
	for range b.Singles {
		took, err := b.oneBare(ctx)
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if took, err = b.startPodd(ctx); err != nil {
			return err
		}
		r.podd = append(r.podd, took.Seconds())
	}
	b.table.add(r)
	return nil
}

func (b *bench) startPodd(ctx context.Context) (time.Duration, error) {
	pods := b.pods(1)
	if err := b.daemon.stage(pods); err != nil {
		return 0, err
	}
	if err := b.daemon.write(pods); err != nil {
		return 0, err
	}
	begin, err := b.daemon.launch()
	if err != nil {
		return 0, err
	}
	at, err := b.started.all(ctx, names(pods), begin)
	if err != nil {
		return 0, err
	}
	if err := b.withdraw(ctx, pods); err != nil {
		return 0, err
	}
	return at.Sub(begin), b.daemon.end()
}

// restart measures the time from killing a pod's process until the next one runs. The floor
// creates the container right after the kill, while podd must detect the exit.
func (b *bench) restart(ctx context.Context) error {
	r := row{name: "killed container runs again", unit: seconds, goal: goal{plus: 0.2}}
	bares, err := b.floor.render(b.pods(1))
	if err != nil {
		return err
	}
	if err := b.floor.run(ctx, bares, 1); err != nil {
		return err
	}
	pods := b.pods(b.Singles)
	if err := b.daemon.begin(ctx); err != nil {
		return err
	}
	if _, _, err := b.apply(ctx, pods); err != nil {
		return err
	}
	for _, p := range pods {
		if err := b.daemon.end(); err != nil {
			return err
		}
		took, err := b.kill(ctx, bares[0].pod.Key.Name, userName(bares[0]), func() error { return b.floor.container(ctx, bares[0]) })
		if err != nil {
			return err
		}
		r.bare = append(r.bare, took.Seconds())
		if err := b.daemon.begin(ctx); err != nil {
			return err
		}
		if took, err = b.kill(ctx, p.name+"-"+nodeName, p.name, func() error { return nil }); err != nil {
			return err
		}
		r.podd = append(r.podd, took.Seconds())
	}
	b.table.add(r)
	if err := b.clear(ctx, bares, 1); err != nil {
		return err
	}
	if err := b.withdraw(ctx, pods); err != nil {
		return err
	}
	return b.daemon.end()
}

// userName returns the pod's name in its manifest.
func userName(p *barePod) string { return p.pod.Key.Name[:len(p.pod.Key.Name)-len(p.pod.Suffix)] }

// kill kills the process of a pod's container, calls again, and returns the time until the next
// process runs.
func (b *bench) kill(ctx context.Context, key, name string, again func() error) (time.Duration, error) {
	id, err := b.floor.containerOf(ctx, key)
	if err != nil {
		return 0, err
	}
	pid, err := b.tasks.pid(id)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return 0, err
	}
	if err := again(); err != nil {
		return 0, err
	}
	at, err := b.started.all(ctx, []string{name}, begin)
	if err != nil {
		return 0, err
	}
	return at.Sub(begin), rest(ctx, pause)
}

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// command is a verb of podd's command line, not started yet. It ends with the
// test at the latest.
func (d *daemon) command(words ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	d.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir(), "TERM=xterm")
	return cmd
}

// outcome is what a verb writes, and its code.
func (d *daemon) outcome(stdin io.Reader, words ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	var out, talk bytes.Buffer
	cmd := d.command(words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &talk
	code = exitCode(d.t, cmd.Run())
	return out.String(), talk.String(), code
}

func exitCode(t testing.TB, err error) int {
	t.Helper()
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return 0
}

// TestExec: a command in a container reads to the end of its input, and podd
// leaves with its code.
func TestExec(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("main")), shell("other", "echo o >/tmp/where; "+serve("other"))))
	d.untilApplied("web")
	for _, c := range []struct {
		stdin     string
		words     []string
		out, talk string
		code      int
	}{
		{words: []string{"web", "-c", "main", "--", "echo", "-n", "a  b", "c"}, out: "a  b c"},
		{words: []string{"-q", "default/web", "--", "echo", "hello"}, out: "hello\n"},
		{words: []string{"web", "--", "echo", "hello"}, out: "hello\n", talk: "podd: defaulted container \"main\" out of: main, other; use -c NAME for others\n"},
		{words: []string{"web", "-c", "other", "--", "cat", "/tmp/where"}, out: "o\n"},
		{stdin: "one\ntwo", words: []string{"-i", "-c", "main", "web", "--", "sh", "-c", "cat; echo oh >&2; exit 7"}, out: "one\ntwo", talk: "oh\npodd: command terminated with exit code 7\n", code: 7},
		{stdin: "one", words: []string{"-q", "-c", "main", "web", "--", "sh", "-c", "cat; exit 200"}, code: 200},
		{stdin: strings.Repeat("0123456789abcdef", 1<<18), words: []string{"-qi", "web", "--", "wc", "-c"}, out: "4194304\n"},
		{words: []string{"-q", "web", "--", "head", "-c", "3000000", "/dev/zero"}, out: strings.Repeat("\x00", 3000000)},
		{words: []string{"-it", "-c", "main", "web", "--", "echo", "hello"}, out: "hello\n", talk: "Unable to use a TTY - input is not a terminal or the right kind of file\n"},
	} {
		out, talk, code := d.outcome(strings.NewReader(c.stdin), append([]string{"exec"}, c.words...)...)
		if out != c.out || talk != c.talk || code != c.code {
			t.Errorf("%v: %.200q, %.200q, %d", c.words, out, talk, code)
		}
	}
	for want, words := range map[string][]string{
		`has no container "mian"; did you mean "main"?`: {"web", "-c", "mian", "--", "true"},
		`no pod "wbe"; did you mean "web"?`:             {"wbe", "--", "true"},
	} {
		if _, talk, code := d.outcome(nil, append([]string{"exec"}, words...)...); code == 0 || !strings.Contains(talk, want) {
			t.Errorf("%v: %q, %d", words, talk, code)
		}
	}

	// What does not start is told in one line, with a shell's code.
	for _, c := range []struct {
		program, says string
		code          int
	}{
		{"nosuchprogram", `podd: container main of web has no program "nosuchprogram" in its $PATH`, 127},
		{"/no/such", `podd: container main of web has no "/no/such"`, 127},
		{"/etc/passwd", `podd: container main of web may not run "/etc/passwd": permission denied`, 126},
		{"/tmp", `podd: container main of web `, 126},
	} {
		for _, how := range []string{"-c", "-tic"} {
			_, talk, code := d.outcome(nil, "exec", "-q", how, "main", "web", "--", c.program)
			if !d.on.ReportsExecErrors() {
				if code != 255 || !strings.Contains(talk, "exec failed") {
					t.Errorf("%s: %q, %d", c.program, talk, code)
				}
				continue
			}
			if code != c.code || !strings.HasPrefix(talk, c.says) || strings.Count(talk, "\n") != 1 {
				t.Errorf("%s: %q, %d", c.program, talk, code)
			}
		}
	}

	// ^C without a terminal.
	cmd := d.command("exec", "-q", "web", "--", "sh", "-c", "echo begun; exec sleep 3600")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Errorf("%q, %v", line, err)
	}
	cmd.Process.Signal(os.Interrupt)
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("interrupted, it left with %d", code)
	}
}

// screen is a terminal with somebody at it.
type screen struct {
	t     testing.TB
	keys  *os.File
	shown chan byte
}

// at starts a command on a terminal of a size.
func at(t testing.TB, cmd *exec.Cmd, width, height uint16) *screen {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	s := &screen{t: t, keys: keys, shown: make(chan byte, 1<<16)}
	s.size(width, height)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.shown)
		for r := bufio.NewReader(keys); ; {
			b, err := r.ReadByte()
			if err != nil { // the command has ended
				return
			}
			s.shown <- b
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-done
		keys.Close()
	})
	return s
}

func (s *screen) size(width, height uint16) {
	if err := unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) types(keys string) {
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until the screen has shown something more.
func (s *screen) shows(want string) {
	s.t.Helper()
	var got strings.Builder
	for b := range s.shown {
		got.WriteByte(b)
		if strings.Contains(got.String(), want) {
			return
		}
	}
	s.t.Fatalf("the screen showed %q, want %q", got.String(), want)
}

// TestExecTerminal: a command has the user's terminal, its size and its keys.
func TestExecTerminal(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("main"))))
	d.untilApplied("web")
	cmd := d.command("exec", "-it", "web", "--", "sh", "-c", `
		trap 'echo interrupted' INT
		trap 'echo now $(stty size)' WINCH
		until test "$(stty size 2>&1)" = "33 77"; do sleep 0.05; done; echo the size; test -t 2 && echo all three
		while :; do read line && { echo got $line; test "$line" != bye || exit 5; }; done`)
	s := at(t, cmd, 77, 33)
	s.shows("the size\r\n")
	s.shows("all three\r\n")
	s.types("hello\r")
	s.shows("got hello\r\n")
	s.size(101, 44)
	s.shows("now 44 101") // in the end: the first size may be news, too
	s.types("\x03")
	s.shows("interrupted")
	s.types("bye\r")
	s.shows("podd: command terminated with exit code 5\r\n")
	if code := exitCode(t, cmd.Wait()); code != 5 {
		t.Errorf("it left with %d", code)
	}
}

// repeats types the same again and again until it is enough. containerd begins to
// pass on a client's input before it is ready to pass on the output: what a
// container answers at once may be seen by nobody.
func repeats(t testing.TB, types func()) (enough func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for {
			types()
			select {
			case <-again.C:
			case <-stop:
				return
			}
		}
	}()
	enough = sync.OnceFunc(func() { close(stop); <-stopped })
	t.Cleanup(enough)
	return enough
}

// TestAttach: to a container that reads lines, and to one with a terminal.
func TestAttach(t *testing.T) {
	t.Parallel()
	d := begin(t)
	reads := `echo begun; while read line; do test "$line" != end || exit 3; echo got $line; echo oh >&2; done; sleep 3600 & wait`
	lines := shell("main", reads)
	lines.Stdin = true
	typed := shell("main", reads)
	typed.Stdin, typed.TTY = true, true
	d.apply(d.pod("lines", lines), d.pod("typed", typed), d.pod("deaf", shell("main", serve("main"))))
	for _, name := range []string{"lines", "typed", "deaf"} {
		d.untilApplied(name)
	}
	if _, talk, code := d.outcome(nil, "attach", "-i", "deaf"); code != 1 || !strings.Contains(talk, "stdin: true") {
		t.Errorf("%q, %d", talk, code)
	}

	cmd := d.command("attach", "-i", "lines")
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var talk strings.Builder
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := bufio.NewReader(out)
	answers := func(word string) {
		t.Helper()
		line, err := shown.ReadString('\n')
		for line == "begun\n" || word != "one" && line == "got one\n" {
			line, err = shown.ReadString('\n')
		}
		if line != "got "+word+"\n" {
			t.Fatalf("%q, %v; %v: %s", line, err, cmd.Wait(), talk.String())
		}
	}
	enough := repeats(t, func() { fmt.Fprintln(keys, "one") })
	answers("one")
	enough()
	for _, word := range []string{"two", "bye"} {
		fmt.Fprintln(keys, word)
		answers(word)
	}
	fmt.Fprintln(keys, "end")
	io.Copy(io.Discard, shown)
	if err := cmd.Wait(); err != nil { // a container's end is no failure of attach
		t.Errorf("attach: %v", err)
	}

	cmd = d.command("attach", "-it", "typed")
	s := at(t, cmd, 77, 33)
	s.shows("If you don't see a command prompt, try pressing enter.\r\n")
	enough = repeats(t, func() { s.keys.WriteString("hello\r") })
	s.shows("got hello\r\n")
	enough()
	s.types("bye\r")
	s.shows("got bye\r\n")
	s.types("end\r")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("it left with %d", code)
	}
}

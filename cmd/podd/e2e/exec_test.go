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

// command returns a podd command that is not started yet. It is killed at the end of the test if
// it is still running.
func (d *daemon) command(words ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	d.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, words...)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir(), "TERM=xterm")
	return cmd
}

// outcome runs a podd command, which may fail, and returns its stdout, stderr and exit code.
func (d *daemon) outcome(stdin io.Reader, words ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd := d.command(words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	code = exitCode(d.t, cmd.Run())
	return out.String(), errs.String(), code
}

// exitCode returns the exit code of a command that has returned err. The exit code is 0 if err is nil.
// The test fails if err is not an *exec.ExitError.
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

// TestExec checks that a command in a container reads its input to the end, and that podd exits
// with the exit code of the command.
func TestExec(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("main")), shell("other", "echo o >/tmp/where; "+serve("other"))))
	d.untilApplied("web")
	// A container without a readiness probe is ready before its script has run.
	d.untilNotedUnordered("main runs", "other runs")
	for _, c := range []struct {
		stdin       string
		words       []string
		out, stderr string
		code        int
	}{
		{words: []string{"web", "-c", "main", "--", "echo", "-n", "a  b", "c"}, out: "a  b c"},
		{words: []string{"-q", "default/web", "--", "echo", "hello"}, out: "hello\n"},
		{words: []string{"web", "--", "echo", "hello"}, out: "hello\n", stderr: "podd: defaulted container \"main\" out of: main, other; use -c NAME for others\n"},
		{words: []string{"web", "-c", "other", "--", "cat", "/tmp/where"}, out: "o\n"},
		{stdin: "one\ntwo", words: []string{"-i", "-c", "main", "web", "--", "sh", "-c", "cat; echo oh >&2; exit 7"}, out: "one\ntwo", stderr: "oh\npodd: command terminated with exit code 7\n", code: 7},
		{stdin: "one", words: []string{"-q", "-c", "main", "web", "--", "sh", "-c", "cat; exit 200"}, code: 200},
		{stdin: strings.Repeat("0123456789abcdef", 1<<18), words: []string{"-qi", "web", "--", "wc", "-c"}, out: "4194304\n"},
		{words: []string{"-q", "web", "--", "head", "-c", "3000000", "/dev/zero"}, out: strings.Repeat("\x00", 3000000)},
		{words: []string{"-it", "-c", "main", "web", "--", "echo", "hello"}, out: "hello\n", stderr: "Unable to use a TTY - input is not a terminal or the right kind of file\n"},
	} {
		out, stderr, code := d.outcome(strings.NewReader(c.stdin), append([]string{"exec"}, c.words...)...)
		if out != c.out || stderr != c.stderr || code != c.code {
			t.Errorf("podd exec %v: got stdout %.200q, stderr %.200q, exit code %d; want stdout %.200q, stderr %.200q, exit code %d", c.words, out, stderr, code, c.out, c.stderr, c.code)
		}
	}
	for want, words := range map[string][]string{
		`has no container "mian"; did you mean "main"?`: {"web", "-c", "mian", "--", "true"},
		`no pod "wbe"; did you mean "web"?`:             {"wbe", "--", "true"},
	} {
		if _, stderr, code := d.outcome(nil, append([]string{"exec"}, words...)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("podd exec %v: got stderr %q, exit code %d; want an exit code other than 0 and stderr with %q", words, stderr, code, want)
		}
	}

	// If the program cannot be started, podd exec prints one line and exits with the code of a shell: 127
	// if the program does not exist, and 126 if it may not be executed.
	for _, c := range []struct {
		program, want string
		code          int
	}{
		{"nosuchprogram", `podd: container main of web has no program "nosuchprogram" in its $PATH`, 127},
		{"/no/such", `podd: container main of web has no "/no/such"`, 127},
		{"/etc/passwd", `podd: container main of web may not run "/etc/passwd": permission denied`, 126},
		{"/tmp", `podd: container main of web `, 126},
	} {
		for _, how := range []string{"-c", "-tic"} {
			_, stderr, code := d.outcome(nil, "exec", "-q", how, "main", "web", "--", c.program)
			if !d.on.ReportsExecErrors() {
				if code != 255 || !strings.Contains(stderr, "exec failed") {
					t.Errorf("podd exec %s: got stderr %q, exit code %d; want exit code 255 and stderr with %q", c.program, stderr, code, "exec failed")
				}
				continue
			}
			if code != c.code || !strings.HasPrefix(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("podd exec %s: got stderr %q, exit code %d; want one line in stderr that begins with %q, and exit code %d", c.program, stderr, code, c.want, c.code)
			}
		}
	}

	// Without a terminal, Ctrl-C ends podd exec.
	cmd := d.command("exec", "-q", "web", "--", "sh", "-c", "echo begun; exec sleep 3600")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Errorf("first line of podd exec: got %q, error %v; want %q", line, err, "begun\n")
	}
	cmd.Process.Signal(os.Interrupt)
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Errorf("podd exec after an interrupt: got exit code %d, want 130", code)
	}
}

// A screen is a pseudo-terminal. The test types on it and reads what a program prints on it.
type screen struct {
	t     testing.TB
	keys  *os.File
	shown chan byte
}

// startOnTerminal starts a command on a new terminal of the given size.
func startOnTerminal(t testing.TB, cmd *exec.Cmd, width, height uint16) *screen {
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
	s.setSize(width, height)
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
			if err != nil { // the command has exited
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

func (s *screen) setSize(width, height uint16) {
	if err := unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) typeKeys(keys string) {
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// waitFor reads from the terminal until the program has printed the text want. It ignores output that
// a previous call has read.
func (s *screen) waitFor(want string) {
	s.t.Helper()
	var got strings.Builder
	for b := range s.shown {
		got.WriteByte(b)
		if strings.Contains(got.String(), want) {
			return
		}
	}
	s.t.Fatalf("terminal: got %q, want %q in it", got.String(), want)
}

// TestExecTerminal checks that a command gets the size and the input of the user's terminal.
func TestExecTerminal(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("main"))))
	d.untilApplied("web")
	cmd := d.command("exec", "-it", "web", "--", "sh", "-c", `
		trap 'echo interrupted' INT
		trap 'echo now $(stty size)' WINCH
		until test "$(stty size 2>&1)" = "33 77"; do sleep 0.05; done; echo the size; test -t 2 && echo all three
		while :; do read line && { echo got $line; test "$line" != bye || exit 5; }; done`)
	s := startOnTerminal(t, cmd, 77, 33)
	s.waitFor("the size\r\n")
	s.waitFor("all three\r\n")
	s.typeKeys("hello\r")
	s.waitFor("got hello\r\n")
	s.setSize(101, 44)
	s.waitFor("now 44 101") // a line with the first size may come before
	s.typeKeys("\x03")
	s.waitFor("interrupted")
	s.typeKeys("bye\r")
	s.waitFor("podd: command terminated with exit code 5\r\n")
	if code := exitCode(t, cmd.Wait()); code != 5 {
		t.Errorf("podd exec -it: got exit code %d, want 5", code)
	}
}

// repeatInput calls the function sendInput every second until the returned function is called. One
// call is not enough, because containerd may forward the input of a client before it can forward
// output. Then the response of the container to the first input is lost.
func repeatInput(t testing.TB, sendInput func()) (enough func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		again := time.NewTicker(time.Second)
		defer again.Stop()
		for {
			sendInput()
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

// TestAttach attaches to a container that reads lines and to one with a terminal.
func TestAttach(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	reads := `echo begun; while read line; do test "$line" != end || exit 3; echo got $line; echo oh >&2; done; sleep 3600 & wait`
	lines := shell("main", reads)
	lines.Stdin = true
	typed := shell("main", reads)
	typed.Stdin, typed.TTY = true, true
	d.apply(d.pod("lines", lines), d.pod("typed", typed), d.pod("deaf", shell("main", serve("main"))))
	for _, name := range []string{"lines", "typed", "deaf"} {
		d.untilApplied(name)
	}
	if _, stderr, code := d.outcome(nil, "attach", "-i", "deaf"); code != 1 || !strings.Contains(stderr, "stdin: true") {
		t.Errorf("podd attach -i without stdin: got stderr %q, exit code %d; want exit code 1 and stderr with %q", stderr, code, "stdin: true")
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
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := bufio.NewReader(out)
	wantResponse := func(word string) {
		t.Helper()
		line, err := shown.ReadString('\n')
		for line == "begun\n" || word != "one" && line == "got one\n" {
			line, err = shown.ReadString('\n')
		}
		if line != "got "+word+"\n" {
			t.Fatalf("podd attach: got the line %q, error %v; want %q; exit error %v, stderr %s", line, err, "got "+word+"\n", cmd.Wait(), stderr.String())
		}
	}
	enough := repeatInput(t, func() { fmt.Fprintln(keys, "one") })
	wantResponse("one")
	enough()
	for _, word := range []string{"two", "bye"} {
		fmt.Fprintln(keys, word)
		wantResponse(word)
	}
	fmt.Fprintln(keys, "end")
	io.Copy(io.Discard, shown)
	if err := cmd.Wait(); err != nil { // attach succeeds when the container exits
		t.Errorf("podd attach -i after the container has exited: got error %v, want none", err)
	}

	cmd = d.command("attach", "-it", "typed")
	s := startOnTerminal(t, cmd, 77, 33)
	s.waitFor("If you don't see a command prompt, try pressing enter.\r\n")
	enough = repeatInput(t, func() { s.keys.WriteString("hello\r") })
	s.waitFor("got hello\r\n")
	enough()
	s.typeKeys("bye\r")
	s.waitFor("got bye\r\n")
	s.typeKeys("end\r")
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("podd attach -it: got exit code %d, want 0", code)
	}
}

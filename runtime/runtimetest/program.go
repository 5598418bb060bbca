package runtimetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Program is the behavior of a container's process. The zero Program runs until it is
// stopped and then exits at once with 143.
type Program struct {
	// Output is written to the log when the program starts.
	Output string
	// ExitsByItself makes the program exit by itself after RunDuration, with ExitCode and Reason.
	ExitsByItself bool
	RunDuration   time.Duration
	ExitCode      int32
	// Reason is the reason of the exit. "" means Completed or Error, depending on the code.
	Reason string
	// StartError makes the start fail with this message.
	StartError string
	// IgnoresTerm makes the program ignore the stop signal.
	IgnoresTerm bool
	// TermDelay is the time that the program takes to exit after the stop signal. TermCode is
	// the exit code in this case; 0 means 143 unless ExitsZeroOnTerm is set.
	TermDelay       time.Duration
	TermCode        int32
	ExitsZeroOnTerm bool
}

func (p Program) termCode() int32 {
	if p.TermCode == 0 && !p.ExitsZeroOnTerm {
		return 143
	}
	return p.TermCode
}

// ParseProgram parses a command line as a shell would, as far as tests need:
//
//	sh -c "trap 'exit 0' TERM; echo hi; sleep 2; exit 3"
//	sleep 1h · exit 3 · true · false
//
// Several sleeps add up; a sleep of "inf" or "infinity" never ends. As in a real process 1, the
// stop signal is ignored unless it is trapped. A command that contains none of these programs runs
// until it is stopped. A command with a path below /no/ does not start.
func ParseProgram(command []string) Program {
	if len(command) > 0 && strings.HasPrefix(command[0], "/no/") {
		return Program{StartError: fmt.Sprintf("exec: %q: stat %s: no such file or directory", command[0], command[0])}
	}
	script := strings.Join(command, " ")
	if len(command) == 3 && strings.HasSuffix(command[0], "sh") && command[1] == "-c" {
		script = command[2]
	}
	p := Program{IgnoresTerm: true}
	isSupported := false
	for _, statement := range strings.FieldsFunc(removeTrap(script, &p), func(r rune) bool { return r == ';' || r == '&' || r == '\n' }) {
		words := strings.Fields(statement)
		for len(words) > 0 && (words[0] == "exec" || words[0] == "wait") {
			words = words[1:]
		}
		if len(words) > 0 && p.addStatement(words) {
			isSupported = true
		}
		if p.ExitsByItself && len(words) > 0 && words[0] == "exit" {
			break
		}
	}
	if !isSupported {
		return Program{}
	}
	return p
}

// removeTrap returns the script without "trap 'exit N' TERM" and sets the fields of p for it.
func removeTrap(script string, p *Program) string {
	before, rest, ok := strings.Cut(script, "trap '")
	if !ok {
		return script
	}
	action, rest, _ := strings.Cut(rest, "'")
	_, rest, _ = strings.Cut(rest, "TERM")
	if code, ok := strings.CutPrefix(action, "exit "); ok {
		p.IgnoresTerm, p.ExitsZeroOnTerm = false, true
		p.TermCode = parseExitCode(code)
	}
	return before + rest
}

// addStatement sets the fields of p for one statement of a script. It returns false if ParseProgram
// does not support the statement.
func (p *Program) addStatement(words []string) bool {
	argument := ""
	if len(words) > 1 {
		argument = words[1]
	}
	switch name := words[0][strings.LastIndex(words[0], "/")+1:]; name {
	case "exit":
		p.ExitsByItself, p.ExitCode = !p.runsForever(), parseExitCode(argument)
	case "true", "false":
		p.ExitsByItself = !p.runsForever()
		if name == "false" {
			p.ExitCode = 1
		}
	case "echo":
		p.Output += strings.Trim(strings.Join(words[1:], " "), `"'`) + "\n"
		p.ExitsByItself = !p.runsForever()
	case "sleep":
		if argument == "inf" || argument == "infinity" {
			p.RunDuration, p.ExitsByItself = -1, false
			return true
		}
		if !p.runsForever() {
			p.RunDuration, p.ExitsByItself = p.RunDuration+parseDuration(argument), true
		}
	default:
		return false
	}
	return true
}

func (p *Program) runsForever() bool { return p.RunDuration < 0 }

// parseExitCode parses an exit code. It returns 0 for invalid text.
func parseExitCode(s string) int32 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// parseDuration parses the argument of sleep: a number of seconds, or a number with a unit. It
// returns 0 for invalid text.
func parseDuration(s string) time.Duration {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(seconds * float64(time.Second))
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		return 24 * parseDuration(days+"h")
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0
	}
	return d
}

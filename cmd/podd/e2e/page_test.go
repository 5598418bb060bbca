//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"podd/runtime/runtimetest/stack/tools"
)

// browser is a Chromium that shows one page.
type browser struct {
	t   testing.TB
	ctx context.Context
}

// browse opens a page in a Chromium of its own, with options more.
func browse(t testing.TB, url string, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	program, err := tools.EnsureBrowser(t.Context(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	options = append(options, more...)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() { chromedp.Cancel(ctx); cancel() })
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatalf("opening %s: %v", url, err)
	}
	return &browser{t, ctx}
}

// until waits for an expression of the page's to become true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("waiting until %s: %v; the page says:\n%s", what, err, text)
	}
}

func (b *browser) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// script runs one in the page.
func script(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](text)
}

// shoot keeps a picture in $PODD_E2E_PICTURES, to be looked at.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("PODD_E2E_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// overflows tells whether something is wider than the window.
func (b *browser) overflows() bool {
	b.t.Helper()
	wide, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
	if err != nil {
		b.t.Fatal(err)
	}
	return wide
}

// podRow is an expression: the row of a pod.
func podRow(pod string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#pods tbody tr")].find(r => r.textContent.includes(%q))`, pod)
}

// forwardSocket has podd's socket on a port of loopback, as ssh -L does.
func (d *daemon) forwardSocket() (addr string) {
	d.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", filepath.Join(d.runDir(), "podd.sock"))
			if err != nil {
				near.Close()
				continue
			}
			go func() { io.Copy(far, near); far.Close() }()
			go func() { io.Copy(near, far); near.Close() }()
		}
	}()
	return ln.Addr().String()
}

// TestPage: a browser shows the node as it is, at once.
func TestPage(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("talker", shell("main", serve("talker"))))
	b := browse(t, "http://"+d.forwardSocket()+"/")
	b.until("the pod is ready", podRow("talker")+`?.className === "ok"`)
	b.until("the node is told", fmt.Sprintf(`document.getElementById("node").textContent === %q`, d.host))
	for _, of := range []string{"cpu", "memory"} {
		b.until("its "+of+" is drawn", fmt.Sprintf(`document.querySelector("#%s-curve path") && document.getElementById(%q).textContent.includes(" of ")`, of, of))
	}
	b.until("nothing came from elsewhere", `performance.getEntriesByType("resource").every(r => new URL(r.name).origin === location.origin)`)
	b.shoot("node")

	d.apply(d.pod("breaker", shell("main", "echo out of luck; exit 3")))
	b.until("the crashed pod is red", podRow("breaker")+`?.className === "bad"`)
	b.until("its row says so", podRow("breaker")+`.textContent.includes("CrashLoopBackOff")`)
	b.until("what happened is told", `document.getElementById("events").innerText.includes("BackOff")`)
	d.write("broken", "apiVersion: v1\nkind: Pod\nmetadata: {name: broken}\nspec: {}\n")
	b.until("the broken manifest is to be mended", `document.getElementById("problems").innerText.includes("broken.yaml:4")`)
	b.shoot("problems")

	d.apply(d.pod("counter", shell("main", `n=0; while :; do n=$((n+1)); echo "line $n <b>&amp;"; sleep 0.2; done`)))
	b.until("the counter is there", podRow("counter")+`?.className === "ok"`)
	// By keyboard: to the filter, to the one pod left, into it.
	b.do("filtering", chromedp.KeyEvent("/"), chromedp.SendKeys("#filter", "counter"))
	b.until("others are not shown", `document.querySelectorAll("#pods tbody tr").length === 1`)
	b.do("opening", script(`document.getElementById("filter").blur()`), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until("the log comes", `document.getElementById("lines").textContent.includes("line 5 <b>&amp;")`)
	b.until("and goes on", `document.getElementById("lines").textContent.includes("line 12 <b>&amp;")`)
	b.until("its events are told", `document.getElementById("pod-events").innerText.includes("Started")`)
	b.until("its use is drawn", `!document.getElementById("pod-curves").hidden && document.querySelectorAll("#pod-curves path").length >= 2`)
	b.shoot("log")
	b.do("closing", chromedp.KeyEvent(kb.Escape))
	b.until("the detail is closed", `!document.getElementById("detail").open`)
	b.do("unfiltering", script(`document.getElementById("filter").value = ""; document.getElementById("filter").dispatchEvent(new Event("input"))`))

	b.do("becoming a phone", chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	if b.overflows() {
		t.Error("the page is wider than a phone")
	}
	b.shoot("phone")
	b.do("becoming a desk", chromedp.EmulateViewport(1280, 900))
	dark := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, dark); err != nil {
		t.Fatal(err)
	}
	b.until("the page is dark", `getComputedStyle(document.body).backgroundColor === "rgb(20, 22, 26)"`)
	b.until("so is the crashed pod", `getComputedStyle(`+podRow("breaker")+`).backgroundColor === "rgb(58, 29, 28)"`)
	b.shoot("dark")

	d.remove("counter")
	b.until("the removed pod leaves", `!(`+podRow("counter")+`)`)
}

// TestPageForAnyone: the read-only port shows no logs and answers to no foreign name.
func TestPageForAnyone(t *testing.T) {
	t.Parallel()
	port := strconv.Itoa(freePort(t))
	d := begin(t, "--read-only-port", port)
	d.apply(d.pod("talker", shell("main", serve("talker"))))
	url := "http://127.0.0.1:" + port + "/"
	b := browse(t, url)
	b.until("the pod is ready", podRow("talker")+`?.className === "ok"`)
	b.do("opening", script(podRow("talker")+`.querySelector("button").click()`))
	b.until("its container is shown", `document.getElementById("containers").textContent.includes("main")`)
	b.until("without a log", `document.querySelectorAll("#containers button").length === 0 && document.getElementById("log").hidden`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "podd.evil.example"
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusMisdirectedRequest || strings.Contains(string(body), "<html") {
		t.Errorf("asked as %s: %d %q, want %d", r.Host, answer.StatusCode, body, http.StatusMisdirectedRequest)
	}
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// key is a key of a terminal that was pressed.
type key struct {
	name string // "up", "pgdown", "enter", "ctrl+c", ...; "": it writes text
	text string
}

// sequences are what terminals send for keys, after an escape character.
var sequences = map[string]string{
	"[A": "up", "[B": "down", "[C": "right", "[D": "left", "OA": "up", "OB": "down", "OC": "right", "OD": "left",
	"[H": "home", "[F": "end", "OH": "home", "OF": "end", "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end",
	"[5~": "pgup", "[6~": "pgdown", "[Z": "shift+tab",
}

// readKey reads a key. An escape character is a key if nothing has come with it.
func readKey(in *bufio.Reader) (key, error) {
	r, _, err := in.ReadRune()
	if err != nil {
		return key{}, err
	}
	switch r {
	case 3:
		return key{name: "ctrl+c"}, nil
	case '\r', '\n':
		return key{name: "enter"}, nil
	case '\t':
		return key{name: "tab"}, nil
	case 8, 127:
		return key{name: "backspace"}, nil
	case 27:
		return readSequence(in)
	}
	if r < ' ' {
		return key{name: "unknown"}, nil
	}
	return key{text: string(r)}, nil
}

// readSequence reads what follows an escape character: a letter after [ or O, and digits before it.
func readSequence(in *bufio.Reader) (key, error) {
	if in.Buffered() == 0 {
		return key{name: "esc"}, nil
	}
	var sequence strings.Builder
	for in.Buffered() > 0 {
		r, _, err := in.ReadRune()
		if err != nil {
			return key{}, err
		}
		sequence.WriteRune(r)
		if sequence.Len() > 1 && (r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '~') {
			break
		}
	}
	if name := sequences[sequence.String()]; name != "" {
		return key{name: name}, nil
	}
	return key{name: "unknown"}, nil
}

// sizePause is the time between two looks at the size of the terminal.
const sizePause = 250 * time.Millisecond

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the other screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// fullScreen draws a screen until a key leaves it, or ctx ends. changes are calls that change what is drawn. draw
// returns the lines for a size; pressed obeys a key, and reports whether it leaves.
func (o *options) fullScreen(ctx context.Context, changes <-chan func(), draw func(width, height int) []string, pressed func(key) bool) error {
	in, isFile := o.In.(*os.File)
	out, isOutFile := o.Out.(*os.File)
	if !isFile || !isOutFile || !term.IsTerminal(int(in.Fd())) {
		return errors.New("--watch needs a terminal for its keys")
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(in.Fd()), state) }()
	_, _ = io.WriteString(o.Out, enterScreen)
	defer func() { _, _ = io.WriteString(o.Out, leaveScreen) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := make(chan key)
	go func() { // it reads until the process ends
		defer cancel()
		buffered := bufio.NewReader(in)
		for k, err := readKey(buffered); err == nil; k, err = readKey(buffered) {
			select {
			case keys <- k:
			case <-ctx.Done():
				return
			}
		}
	}()
	look := time.NewTicker(sizePause)
	defer look.Stop()
	drawn := ""
	for {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return err
		}
		if width <= 0 || height <= 0 { // a terminal that does not know its size
			width, height = 80, 24
		}
		if screen := screenOf(draw(width, height)); screen != drawn {
			drawn = screen
			if _, err := io.WriteString(o.Out, screen); err != nil {
				return err
			}
		}
		select {
		case k := <-keys:
			if pressed(k) {
				return nil
			}
		case change := <-changes:
			change()
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// screenOf returns what shows the lines in place of what was shown before: each line is cleared behind its end, and
// nothing flickers.
func screenOf(lines []string) string {
	return "\x1b[H" + strings.Join(lines, "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

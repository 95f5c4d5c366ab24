// Sluice-verify checks exports and proofs of Sluice's audit log, and its reports, without Sluice: nothing here is shared with it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `sluice-verify --export FILE --root CERT [--anchor FILE] [--output text|json]
sluice-verify --proof FILE --root CERT [--output text|json]
sluice-verify --report FILE --root CERT [--output text|json]

Checks an export of Sluice's audit log, the proof of one entry, or a report. FILE may be - for standard input; a report has a name.

  --export FILE   made by sluice audit export or GET /audit/export
  --proof FILE    made by GET /audit/entries/{seq}/proof as text/plain
  --report FILE   a signed PDF, a file with FILE.p7s beside it, manifest.json and all that it names, or a night's folder
  --root CERT     the root certificate of the log, or of the reports, PEM or DER, as you got it from its operator earlier, not with FILE
  --anchor FILE   checkpoints that were kept elsewhere: the file must go on from each of them
  --output FORM   text (default) or json

Exit status: 0 whole or valid, 2 options that do not fit, 4 tampered with, 6 could not be checked, 7 records are missing by gap or purge beyond policy.
`

// What a run was asked to do.
type options struct {
	export, proof, report, root, anchor, output string
}

// misused is the exit status of options that do not fit, that of most programs.
const misused = 2

func main() {
	signal.Ignore(syscall.SIGPIPE) // a report that is not read to its end still has its verdict
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process: the exit status of one call.
func run(arguments []string, stdin io.Reader, stdout, stderr io.Writer) int {
	asked, err := parseOptions(arguments, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "sluice-verify: %v\n\n%s", err, usage)
		return misused
	}
	checked, err := check(asked, stdin)
	if err != nil {
		fmt.Fprintf(stderr, "sluice-verify: %v\n", err)
		return exitStatus[unchecked]
	}
	write := checked.writeText
	if asked.output == "json" {
		write = checked.writeJSON
	}
	// Who closes a pipe, such as head, has read all that was wanted.
	if err := write(stdout); err != nil && !errors.Is(err, syscall.EPIPE) {
		fmt.Fprintf(stderr, "sluice-verify: the report could not be written: %v\n", err)
		return exitStatus[unchecked]
	}
	return exitStatus[checked.verdict()]
}

func parseOptions(arguments []string, stderr io.Writer) (asked options, err error) {
	flags := flag.NewFlagSet("sluice-verify", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&asked.export, "export", "", "")
	flags.StringVar(&asked.proof, "proof", "", "")
	flags.StringVar(&asked.report, "report", "", "")
	flags.StringVar(&asked.root, "root", "", "")
	flags.StringVar(&asked.anchor, "anchor", "", "")
	flags.StringVar(&asked.output, "output", "text", "")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
		}
		return asked, err
	}
	switch {
	case flags.NArg() > 0:
		return asked, fmt.Errorf("%q is no option", flags.Arg(0))
	case given(asked.export, asked.proof, asked.report) != 1:
		return asked, errors.New("name one file with --export, with --proof or with --report")
	case asked.root == "":
		return asked, errors.New("name the root certificate with --root; without it no signature says anything")
	case asked.anchor != "" && asked.export == "":
		return asked, errors.New("--anchor is for --export")
	case asked.output != "text" && asked.output != "json":
		return asked, fmt.Errorf("--output is text or json, not %q", asked.output)
	}
	return asked, nil
}

// given counts the options that were.
func given(options ...string) (n int) {
	for _, one := range options {
		if one != "" {
			n++
		}
	}
	return n
}

// An answer is what was found, ready to be told.
type answer interface {
	writeText(io.Writer) error
	writeJSON(io.Writer) error
	verdict() verdict
}

// check does what was asked; an error says why nothing could be checked.
func check(asked options, stdin io.Reader) (answer, error) {
	file, err := os.ReadFile(asked.root)
	if err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	root, err := readRoot(file)
	if err != nil {
		return nil, fmt.Errorf("--root %s: %w", asked.root, err)
	}
	if asked.report != "" {
		return judgeReport(asked.report, root), nil
	}
	anchors, err := readAnchors(asked.anchor)
	if err != nil {
		return nil, fmt.Errorf("--anchor %s: %w", asked.anchor, err)
	}
	name := asked.export + asked.proof
	input, err := openInput(name, stdin)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	if asked.proof != "" {
		return checkProof(input, name, root)
	}
	return checkExport(input, root, anchors, time.Now()), nil
}

func readAnchors(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return notesIn(string(file))
}

func openInput(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(name)
}

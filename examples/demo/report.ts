/** One line that a handler wrote when it began or ended: the record that the library knows nothing of. */
export interface RunRecord {
  readonly phase: 'started' | 'finished'
  readonly id: string
  readonly event: string
  readonly attempt: number
  readonly fence: number
  readonly atMs: number
}

/** What the sender saw of one receiver. */
export interface Answers {
  /** Genuine deliveries and their copies. */
  genuine: number
  forged: number
  pings: number
  /** Answers of the handler itself. */
  ran: number
  copies200: number
  copies202: number
  refused: number
  pingsAnswered: number
  /** Requests whose connection broke because the receiver was killed. */
  cutOff: number
  /** Answers that nothing of the above explains. */
  readonly unexpected: string[]
}

/** Everything that is known about one receiver when the traffic is over. */
export interface Result {
  readonly framework: string
  readonly answers: Answers
  /** The ids of the deliveries that have to run. */
  readonly expected: readonly string[]
  /** The delivery whose receiver was killed while it ran. */
  readonly killed: string
  readonly leaseMs: number
  readonly runs: readonly RunRecord[]
}

/** One line of the table. */
export interface Row {
  readonly framework: string
  readonly received: number
  readonly ran: number
  readonly copies200: number
  readonly copies202: number
  readonly refused: number
  readonly pings: number
  readonly cutOff: number
  readonly tookOver: number
  readonly lost: number
  readonly runTwice: number
}

export function rowOf({ framework, answers, expected, runs }: Result): Row {
  const finished = runs.filter(({ phase }) => phase === 'finished')
  const finishedIds = new Set(finished.map(({ id }) => id))
  return {
    framework,
    received: answers.genuine + answers.forged + answers.pings,
    ran: finishedIds.size,
    copies200: answers.copies200,
    copies202: answers.copies202,
    refused: answers.refused,
    pings: answers.pingsAnswered,
    cutOff: answers.cutOff,
    tookOver: finished.filter(({ attempt }) => attempt > 1).length,
    lost: expected.filter((id) => !finishedIds.has(id)).length,
    runTwice: finished.length - finishedIds.size,
  }
}

/** What is wrong with a result, in words. Empty when every count is right. */
export function problemsOf(result: Result): readonly string[] {
  const { answers, expected, killed, leaseMs, runs } = result
  const row = rowOf(result)
  const started = runs.filter(({ phase }) => phase === 'started')
  const [first, second] = started.filter(({ id }) => id === killed)
  const known = new Set(expected)
  const rules: readonly (readonly [holds: boolean, otherwise: string])[] = [
    [row.lost === 0, `${row.lost} deliveries were lost`],
    [row.runTwice === 0, `${row.runTwice} deliveries ran twice`],
    [runs.every(({ id }) => known.has(id)), 'something ran that was not to run'],
    [row.ran === answers.ran, `${row.ran} ran, but ${answers.ran} answers came from a handler`],
    [row.refused === answers.forged, `${answers.forged} forged, but ${row.refused} refused`],
    [row.pings === answers.pings, `${answers.pings} pings, but ${row.pings} answered`],
    [row.cutOff === 1, `1 receiver was killed, but ${row.cutOff} requests were cut off`],
    [row.tookOver === 1, `1 delivery was to be taken over, but ${row.tookOver} were`],
    [
      started.length === expected.length + 1,
      `${expected.length} deliveries and one takeover were to start, but ${started.length} started`,
    ],
    [
      first !== undefined && second !== undefined && second.atMs - first.atMs >= leaseMs,
      'the killed delivery was not taken over after its lease had ended',
    ],
    [
      first !== undefined && second !== undefined && second.fence > first.fence,
      'the fence did not grow with the takeover',
    ],
    [row.copies202 > 0, 'no copy met a run in hand'],
    [
      row.received ===
        row.ran + row.copies200 + row.copies202 + row.refused + row.pings + row.cutOff,
      'the counts do not add up to what was received',
    ],
    [answers.unexpected.length === 0, `unexpected answers: ${answers.unexpected.join('; ')}`],
  ]
  return rules.filter(([holds]) => !holds).map(([, otherwise]) => otherwise)
}

const columns: readonly (readonly [keyof Row, string])[] = [
  ['framework', 'framework'],
  ['received', 'received'],
  ['ran', 'ran'],
  ['copies200', 'copies 200'],
  ['copies202', 'copies 202'],
  ['refused', 'refused'],
  ['pings', 'pings'],
  ['cutOff', 'cut off'],
  ['tookOver', 'took over'],
  ['lost', 'lost'],
  ['runTwice', 'run twice'],
]

export function tableOf(rows: readonly Row[]): string {
  const lines = [
    columns.map(([, title]) => title),
    ...rows.map((row) => columns.map(([name]) => String(row[name]))),
  ]
  const widths = columns.map((_, index) =>
    Math.max(...lines.map((cells) => cells[index]?.length ?? 0)),
  )
  return lines
    .map((cells) =>
      cells
        .map((cell, index) =>
          index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0),
        )
        .join('  '),
    )
    .join('\n')
}

/** The end of the demo: its table, what it means, and the exit code. */
export function reportOf(results: readonly Result[]): {
  readonly text: string
  readonly exitCode: 0 | 1
} {
  const problems = results.flatMap((result) =>
    problemsOf(result).map((problem) => `  ${result.framework}: ${problem}`),
  )
  const verdict =
    problems.length === 0 ? 'Every count is right.' : ['WRONG:', ...problems].join('\n')
  return {
    exitCode: problems.length === 0 ? 0 : 1,
    text: `${tableOf(results.map(rowOf))}

received = ran + copies + refused + pings + cut off. Runs are counted in files that the handlers write themselves.
cut off: the receiver was killed with SIGKILL while this handler ran. The handler had begun and wrote nothing more;
after the lease had ended, the restarted receiver took the delivery over and ran it to its end. So this one handler
began twice: the library cannot undo what a killed process did before, it makes sure that the work gets done.

${verdict}`,
  }
}

import { answer } from './app.ts'

export default { fetch: (request: Request) => answer(request) }


/*
 * The system messages of asides: which task a message is, the title of a
 * conversation, the steps of a request.  The user message that follows is the
 * client's text.
 *
 * The demo model is trained with exactly these texts (demo/train.py reads them
 * from here), so a change here needs another training.
 */


#ifndef _NGX_HTTP_VLM_ASK_TEXT_H_INCLUDED_
#define _NGX_HTTP_VLM_ASK_TEXT_H_INCLUDED_


#define NGX_HTTP_VLM_ASK_TASK                                                 \
    "Choose the one task that fits the request.\n"                            \
    "general: a question, a description or talk about the picture.\n"         \
    "grounding: find or box a named object.\n"                                \
    "pointing: give points or positions.\n"                                   \
    "affordance: where or how to grasp, hold or use an object.\n"             \
    "trajectory: the path of a movement.\n"                                   \
    "Answer with one word: general, grounding, pointing, affordance or "      \
    "trajectory."


#define NGX_HTTP_VLM_ASK_TITLE                                                \
    "Name the topic of the message in two to four words. Answer with these "  \
    "words alone, without quotes."


#define NGX_HTTP_VLM_ASK_STEPS                                                \
    "Break the request into the fewest steps, in this order: understand, "    \
    "locate, plan the motion, grasp. Each step has one task: general (a "     \
    "question), grounding (the box of an object), pointing (points), "        \
    "affordance (where to grasp), trajectory (a path; its prompt says what "  \
    "moves and where to). Locate an object before it is grasped or moved.\n"  \
    "Answer with a JSON array alone: [{\"step\": 1, \"task\": "               \
    "\"grounding\", \"prompt\": \"...\", \"description\": \"...\", "          \
    "\"use_previous\": false}]\n"                                             \
    "use_previous is true where a step needs the answer before it."


#endif /* _NGX_HTTP_VLM_ASK_TEXT_H_INCLUDED_ */
